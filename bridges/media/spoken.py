"""Links and pipes over a stream of bytes whose devices speak a protocol, such as a serial line."""

import logging
import time
from asyncio import TimerHandle
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, ClassVar, NamedTuple

from bridges.media.byte_echo import ECHO_S, ByteEcho
from bridges.media.byte_stream import BytePort, ByteStreamPipe
from bridges.media.device import Alarm, DeviceLink, OpenPipe, PipeContext, cancel
from bridges.media.likeness import likeness
from bridges.media.outgoing import Outgoing
from bridges.media.shedding import Shed
from bridges.protocols.protocol import Protocol as Spoken
from bridges.protocols.translator import Translator, Wire, always
from bus.hub import Link
from bus.noise import Ear
from bus.text import quoting
from bus.vacancy import Filter
from bus.wire.batch import Batch, from_payloads, payloads

log = logging.getLogger("buscoupler.bridges")

UNHEARD_BYTES = 4096
"""More bytes than a frame takes: so many without one are noise."""
_AHEAD_S = 0.04  # what the driver may hold; no policy reaches it there
_AHEAD_BYTES_MIN = 64
_LATE_S = 2.0  # a network that loses much needs about so long to bring a request


class Conversation(NamedTuple):
    """An open device, and the translator of what is said there."""

    port: BytePort
    translator: Translator[bytes]


def unix_s(loop_time: Callable[[], float], now_s: float) -> float:
    """Return a time of the loop's clock in seconds since 1970, as the machine's clock has it now."""
    return time.time() - (loop_time() - now_s)


def ear_of(protocol: Spoken, doubts: str = "") -> Ear:
    """Return the ear of a stream whose devices speak `protocol`. `doubts`: the settings of a serial line
    that may be wrong, "" where there is none."""
    guess = f"another protocol, or {doubts}" if doubts else "another protocol"

    def likely(sample: bytes) -> str:
        seems = likeness(sample, spoken=protocol.key, is_line=bool(doubts))
        return seems or protocol.guess(sample, guess)

    return Ear(most=UNHEARD_BYTES, guess=guess, noun=protocol.noun, likeness=likely)


class SpokenLink(DeviceLink[Conversation]):
    """A link to one device of bytes, which speaks `protocol`. A medium adds `_open_port`.

    `byte_s`: the seconds that a byte takes on the line; 0 if nobody knows. `may_act` and `names` are those of
    `bridges.protocols.translator.Wire`. `has_echo`: what is written comes back, and is taken out. `rest` is
    that of `DeviceLink`. `doubts`: the settings that may be wrong where no device is understood.
    """

    doubts: ClassVar[str] = ""

    def __init__(
        self,
        name: str,
        protocol: Spoken,
        shed: Shed | None,
        queue_bytes: int,
        byte_s: float = 0.0,
        may_act: Callable[[float], bool] = always,
        names: Sequence[str] = (),
        has_echo: bool = False,
        **rest: Any,
    ) -> None:
        self.protocol, self.byte_s, self._may_act, self.names = protocol, byte_s, may_act, names
        self.has_echo = has_echo
        super().__init__(name, shed, queue_bytes, **rest)

    @property
    def ear(self) -> Ear:
        return ear_of(self.protocol, self.doubts)

    @property
    def late_s(self) -> float:
        """The time after which a request must not come to a device any more; 0 where none is asked."""
        return max(_LATE_S, self.protocol.age_ms / 1000) if self.protocol.asks else 0.0

    def _open_port(self) -> BytePort:
        """Open the device. Runs in a worker thread: it may block and raise any exception."""
        raise NotImplementedError

    def _open_device(self) -> Conversation:
        wire = Wire(
            self.name,
            "bytes",
            self.stats,
            partial(unix_s, self._loop.time),
            self.byte_s,
            self._may_act,
            self.names,
        )
        translator = self.protocol.translator(wire)
        return Conversation(self._open_port(), translator)

    def _missing(self) -> Filter | None:
        if not self.protocol.asks:
            return None
        from bridges.media.refusing import refusing  # late: most gateways ask no devices

        return refusing(self.protocol, self.stats, self._hub, self._loop)

    def _release(self, device: Conversation) -> None:
        device.port.close()

    def _make_pipe(self, device: Conversation, context: PipeContext) -> OpenPipe:
        device.translator.know(self.names)  # which a reload may have changed meanwhile
        echo = ByteEcho(self.stats) if self.has_echo else None
        return SpokenPipe(device, self.shed, self.byte_s, context, echo)

    @property
    def condition(self) -> str:
        said = self.pipe.condition if isinstance(self.pipe, SpokenPipe) else ""
        return super().condition or said

    def revise(self, other: Link) -> bool:
        """Take over the names of another link, too."""
        if isinstance(other, SpokenLink):
            self.names = other.names
            if isinstance(self.pipe, SpokenPipe):
                self.pipe.know(self.names)
        return super().revise(other)


class SpokenPipe(ByteStreamPipe):
    """The one peer of such a device: everything at its far end."""

    def __init__(
        self,
        conversation: Conversation,
        shed: Shed,
        byte_s: float,
        context: PipeContext,
        echo: ByteEcho | None = None,
    ) -> None:
        super().__init__(conversation.port, context)
        self._translator, self._byte_s = conversation.translator, byte_s
        self.answers = self._translator.asks
        self._echo, self._told = echo, ""
        self._outgoing = Outgoing(self.stats, shed, self._translator)
        self._ahead_bytes = max(_AHEAD_BYTES_MIN, int(_AHEAD_S / byte_s)) if byte_s else 1 << 16
        self._waiting = False  # for room in the driver
        self._alarm = Alarm(self._turn)
        self._again: TimerHandle | None = None

    @property
    def condition(self) -> str:
        """The state of the devices in the protocol's own words; "" if it has none."""
        return self._translator.condition

    def start(self) -> None:
        super().start()
        self._arm()

    def _came(self, data: bytes) -> None:
        if data:
            self._hear(data)
            self._flush()

    def _hear(self, data: bytes) -> None:
        """Give the translator what came, without our own echo."""
        now_s = self._loop.time()
        if self._echo is not None:
            data = self._echo.heard(data, now_s)
        if data:
            if self._wire.hears:
                self._wire.tell((data,))
            self._publish(self._translator.take([data], now_s))
            self._note(data)

    def _publish(self, messages: "list[bytes] | tuple[bytes, ...]") -> None:
        if messages:
            self._hub.publish(from_payloads(messages), self)

    def _note(self, data: bytes) -> None:
        self._outgoing.settle_held()
        found, noise = self._translator.take_counts()
        self.stats.noise_bytes += noise
        self._keep(data, found)
        self._heard(len(data), found, noise, self._said)
        self._tell()

    def _tell(self) -> None:
        """Log that the devices have trouble, or have none any more, in the protocol's own words."""
        before, self._told = self._told, self._translator.condition
        if self._told and self._told != before:
            log.warning("%s: %s", self.name, self._told)
        elif before and not self._told:
            log.info("%s: no more: %s", self.name, before)

    def _arm(self) -> None:
        """Have the translator called when it wants to be, or the echo when it expires."""
        due_s = min(self._translator.due_s, inf if self._echo is None else self._echo.due_s)
        if not self._closed:
            self._alarm.set(self._loop, due_s)

    def _turn(self) -> None:
        if self._echo is not None:
            self._hear(b"")
        turn = self._translator.advance(self._loop.time())
        self._publish(list(turn.messages))
        if self._translator.asks and turn.items:
            self._outgoing.retract()
        self._outgoing.say(turn.items)
        self._note(b"")
        self._flush()

    def know(self, names: Sequence[str]) -> None:
        """Have the translator write tokens by these names from now on."""
        self._translator.know(names)

    def revise(self, shed: Shed) -> bool:
        """Use another shed policy for all messages that are not translated yet."""
        self._outgoing.revise(shed)
        self._flush()
        return True

    def _put(self, batch: Batch) -> None:
        self._outgoing.put(list(payloads(batch)), self._loop.time())
        if not self._waiting and self._again is None:
            self._flush()
        elif self.answers:
            self._arm()

    def turn_away(self, messages: Sequence[bytes], reason: str) -> None:
        self._outgoing.turn_away(messages, reason)
        self._arm()

    def purge(self, reason: str) -> list[bytes]:
        """Drop the messages that have not begun, and return them. Bytes in the driver are still sent."""
        dropped = self._outgoing.purge(reason)
        self._arm()
        return dropped

    def _ahead_s(self, size: int) -> float:
        return (size + self._port.waiting()) * self._byte_s

    def _flush(self) -> None:
        """Write what the line takes now."""
        cancel(self._again)
        self._again = None
        if self._closed or self._lost:
            return None
        now_s = self._loop.time()
        if self._translator.asks and self._outgoing and not self._translator.wire.may_act(now_s):
            self._outgoing.retract()
        self._outgoing.expire(now_s)
        while self._outgoing and (room := max(0, self._ahead_bytes - self._port.waiting())):
            chunk = self._outgoing.head(room, now_s, self._ahead_s)
            if not chunk:
                break
            try:
                count = self._port.write(chunk)
            except OSError as error:
                return self._lose(error)
            self._outgoing.settle(count)
            if self._wire.hears and count:
                self._wire.tell((chunk[:count],), True)
            if self._echo is not None:
                on_line = max(self._port.waiting(), count)
                self._echo.sent(chunk[:count], self._loop.time() + on_line * self._byte_s + ECHO_S)
            if count < len(chunk):
                self._wait_for_room()
                return self._arm()
        self._rest(now_s)
        self._tell()
        if self._translator.over:
            self._loop.call_soon(self._gone, quoting(self._translator.over, self._said))
        return self._arm()

    def _gone(self, why: str) -> None:
        if not self._closed:
            if self.answers:
                self._outgoing.close("closed")
            self._publish(self._translator.finish(self._loop.time()))
        super()._gone(why)

    def _wait_for_room(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._fd, self._flush)

    def _rest(self, now_s: float) -> None:
        """Stop waiting for the driver. Look again when its buffer is half empty, or a rate allows more."""
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._fd)
        if not self._outgoing:
            return
        half_s = now_s + max(0.001, self._ahead_bytes / 2 * self._byte_s)
        at_s = half_s if self._port.waiting() else self._outgoing.ready_s()
        if at_s < inf:
            self._again = self._loop.call_at(max(at_s, now_s + 0.001), self._flush)

    def _end(self, why: str) -> None:
        self._alarm.cancel()
        cancel(self._again)
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._outgoing.close("closed")
        self._port.close()
        self.stats.noise_bytes += self._translator.take_counts()[1]
