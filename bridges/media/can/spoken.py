"""A CAN bus whose devices speak a protocol of their own: the link, and the voice that its translator has."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from math import inf
from typing import Any, NamedTuple

from bridges.items import ERROR, FD, FD_ON_CLASSIC, OWN, CanFrame
from bridges.media.can.clock import Clock
from bridges.media.can.codec import subject_mask
from bridges.media.can.link import CanBus, OpenBus
from bridges.media.can.medium import Can
from bridges.media.can.pipe import CanPipe
from bridges.media.can.port import shut_down
from bridges.media.can.raw import Filter
from bridges.media.can.shared import Shared
from bridges.media.can.strangers import Strangers
from bridges.media.can.voice import Inbound, OnFrame, OnFrames, Voice
from bridges.media.device import Alarm, OpenPipe, PipeContext
from bridges.media.shedding import Shed
from bridges.packed import Packed, has_fd
from bridges.protocols.protocol import Protocol
from bridges.protocols.translator import Sent, Translator, Wire, always
from bus.hub import Link
from bus.wire.batch import Batch, Frames, from_payloads

FOREIGN = "foreign"
ECHO_S = 10.0
"""The time that a frame which we sent may take to come back, where a driver has no mark for it."""


class Conversation(NamedTuple):
    """An open bus, and the translator of what is said there. `classic`: that it carries no CAN FD, and
    what to do; "" if it does."""

    bus: OpenBus
    translator: Translator[CanFrame]
    classic: str


class CanSpoken(CanBus[Conversation]):
    """A CAN bus as a link, with a protocol. `rest` is that of `CanBus`.

    `may_act` is that of `bridges.protocols.translator.Wire`. `subjects` are the Cyphal subjects of TMQ on the
    same bus: their frames are neither taken nor sent.
    """

    def __init__(
        self,
        options: Can,
        protocol: Protocol,
        shed: Shed | None = None,
        may_act: Callable[[float], bool] = always,
        subjects: tuple[int, ...] = (),
        names: Sequence[str] = (),
        **rest: Any,
    ) -> None:
        self.protocol, self._may_act, self._subjects, self.names = protocol, may_act, subjects, names
        super().__init__(options, shed=shed, **rest)
        self.strangers = Strangers(self.name, "", subjects, protocol.way.inward != (), protocol.noun)

    def _filters(self) -> Sequence[Filter] | None:
        filters = self.protocol.filters()
        if filters is None:
            return None
        # with the bit of error frames in its mask, a filter is one of the kernel's for these alone
        return [(one & ~ERROR, mask & ~ERROR) for one, mask in filters]

    def _open_device(self) -> Conversation:
        clock, classic = Clock(self._loop.time, time.time), self._classic()
        wire = Wire(
            self.name,
            "frames",
            self.stats,
            clock.unix_s,
            may_act=self._may_act,
            names=self.names,
            came_s=clock.came_s,
            unfit=partial(why_not, self.options.sends_fd and not classic, self._subjects),
        )
        translator = self.protocol.translator(wire)
        return Conversation(self._open_bus(), translator, classic)

    def revise(self, other: Link) -> bool:
        """Take over what another link to this bus has; other names take a new opening."""
        return isinstance(other, CanSpoken) and self.names == other.names and super().revise(other)

    def close(self) -> None:
        super().close()
        self.strangers.close()

    def _release(self, device: Conversation) -> None:
        shut_down(device.bus)

    def _make_pipe(self, device: Conversation, context: PipeContext) -> OpenPipe:
        port = self._port(device.bus)
        self.strangers.open(self._loop, device.translator.misfit)
        voice = TranslatedVoice(
            self._shared,
            device.translator,
            self._subjects,
            self.protocol.hears_errors,
            self.strangers,
            device.classic,
        )
        return CanSpokenPipe(self._shared, port, voice, self._restarter(), context)

    @property
    def condition(self) -> str:
        """The words of the translator, or the state of the controller, with its counters if it has errors."""
        said = self.pipe.condition if isinstance(self.pipe, CanSpokenPipe) else ""
        said = said or (self.strangers.words if self.state == "up" else "")
        state, bus = super().condition, self.bus
        if state in ("error-active", "unknown"):
            return said or state
        if state not in ("error-warning", "error-passive") or bus.tx_errors is None:
            return state
        return f"{state}: error counters {bus.tx_errors} sending, {bus.rx_errors} receiving"


class TranslatedVoice(Voice):
    """The voice of a translator, within what the bus can carry."""

    echo_s = ECHO_S

    def __init__(
        self,
        shared: Shared,
        translator: Translator[CanFrame],
        subjects: tuple[int, ...],
        errors: bool,
        strangers: Strangers,
        classic: str = "",
    ) -> None:
        self.translator, self.classic, self._strangers = translator, classic, strangers
        self._shared, self._subjects, self._errors = shared, subjects, errors
        self._fd = shared.options.sends_fd and not classic

    @property
    def is_free(self) -> bool:  # type: ignore[override]
        return self.translator.is_free

    def encode(self, message: bytes, now_s: float) -> Sent[CanFrame]:
        sent = self.translator.give(message, now_s)
        for frame in sent.items:
            if why := why_not(self._fd, self._subjects, frame):
                return Sent(why=why)
        return sent

    def run(self, messages: Sequence[bytes], now_s: float) -> Sequence[CanFrame] | None:
        frames = self.translator.give_all(messages, now_s)
        if frames is None or self._subjects:
            return None
        return frames if self._fd or not has_fd(frames) else None

    def ran(self, count: int) -> None:
        self._shared.stats.said += count

    def may_say(self, frame: CanFrame) -> bool:
        """Tell whether the bus can carry a frame that the translator says by itself."""
        return not why_not(self._fd, self._subjects, frame)

    def hearing(self, on_confirmed: OnFrames, on_error: OnFrame) -> "TranslatedInbound":
        return TranslatedInbound(
            self._shared,
            self.translator,
            self._subjects,
            self._errors,
            self._strangers,
            on_confirmed,
            on_error,
        )


def why_not(fd: bool, subjects: tuple[int, ...], frame: CanFrame) -> str:
    """Return why a bus cannot carry a frame, with CAN FD if `fd`, beside subjects of TMQ; "" if it can."""
    if frame[2] & FD and not fd:
        return FD_ON_CLASSIC
    return FOREIGN if subjects and is_tmq(frame[0], subjects) else ""


def is_tmq(identifier: int, subjects: tuple[int, ...]) -> bool:
    """Tell whether a frame is one of TMQ with one of these subjects, from any node."""
    return any(not (identifier ^ value) & mask for value, mask in map(subject_mask, subjects))


class TranslatedInbound(Inbound):
    """The receiving half: own frames by the driver's mark, or by counted matching where there is none.

    Error frames are states and counts; with `errors` the translator has them too.
    """

    def __init__(
        self,
        shared: Shared,
        translator: Translator[CanFrame],
        subjects: tuple[int, ...],
        errors: bool,
        strangers: Strangers,
        on_confirmed: OnFrames,
        on_error: OnFrame,
    ) -> None:
        super().__init__(shared, on_confirmed, on_error)
        self._translator, self._subjects, self._errors = translator, subjects, errors
        self._strangers = strangers

    def _messages(self, now: float, frames: Sequence[CanFrame], stamps_ns: Sequence[int]) -> list[bytes]:
        if isinstance(frames, Packed) and not (self._own or self._subjects or frames.has_errors):
            frames, stamps_ns = self._without_own(frames, stamps_ns)
        elif not all(taken := self._taken(frames, now)):
            frames, stamps_ns = list(compress(frames, taken)), list(compress(stamps_ns, taken))
        if not frames:
            return []
        messages = self._translator.take(frames, now, stamps_ns)
        self.came_ns = self._translator.came_ns
        if self._strangers.is_waiting:
            self._strangers.hear((one[0] for one in frames if not one[0] & ERROR), self._translator.found)
        return messages

    def _is_shown(self, frame: CanFrame) -> bool:
        if frame[0] & ERROR:
            return self._errors
        return bool(frame[2] & OWN) or not (self._subjects and is_tmq(frame[0], self._subjects))

    def _taken(self, frames: Sequence[CanFrame], now: float) -> Sequence[bool]:
        """Return which frames somebody else sent, for the translator. Count or confirm the others."""
        count = self._confirm(frames)
        if count == len(frames):
            return (False,) * count
        if self._own or self._subjects or any(frame[0] & ERROR for frame in frames):
            return [self._is_taken(frame, count > 0, now) for frame in frames]
        return [not frame[2] & OWN for frame in frames]

    def _is_taken(self, frame: CanFrame, is_confirmed: bool, now: float) -> bool:
        """Return whether somebody else sent a frame, for the translator. Count it if not.

        `is_confirmed`: our own are confirmed already.
        """
        if frame[0] & ERROR:
            self._on_error(frame)
            if not self._errors:
                self._stats.reject("error frame")
            return self._errors
        if frame[2] & OWN:
            if not is_confirmed:
                self._on_confirmed((frame,))
            return False
        if self._own and self._own.take(frame, now):
            self._stats.reject("echo")
        elif self._subjects and is_tmq(frame[0], self._subjects):
            self._stats.reject(FOREIGN)
        else:
            return True
        return False


class CanSpokenPipe(CanPipe):
    """A pipe to all other nodes on a CAN bus, whose translator is also called as time passes."""

    _voice: TranslatedVoice

    def __init__(self, shared: Shared, port: Any, voice: TranslatedVoice, *rest: Any) -> None:
        super().__init__(shared, port, voice, *rest)
        self._voice, self._translator = voice, voice.translator
        self._alarm, self._due_s = Alarm(self._turn), inf

    @property
    def condition(self) -> str:
        """The state of the devices in the protocol's own words, or that the bus is classic; "" if neither."""
        return self._translator.condition or self._voice.classic

    def start(self) -> None:
        super().start()
        self._arm()

    def _publish(self, frames: Sequence[CanFrame], stamps_ns: Sequence[int]) -> None:
        was_free = self._translator.is_free
        super()._publish(frames, stamps_ns)
        self._translator.take_counts()
        if not was_free:
            self._outbound.pump()
        self._arm()

    def _on_error(self, frame: CanFrame) -> None:
        """Evaluate an error frame whose meaning is laid down; the voice counts or takes each."""
        if self._port.confirms:
            super()._on_error(frame)

    @staticmethod
    def _batch_of(messages: Sequence[bytes]) -> Batch:
        return Frames(messages)

    def _put(self, batch: Batch) -> None:
        super()._put(batch)
        self._arm()

    def _arm(self) -> None:
        """Have the translator called when it wants to be."""
        due_s = self._translator.due_s
        if due_s != self._due_s and not self._closed:
            self._due_s = due_s
            self._alarm.set(self._loop, due_s)

    def _turn(self) -> None:
        self._due_s = inf
        turn = self._translator.advance(self._loop.time())
        if turn.messages:
            self._hub.publish(from_payloads(turn.messages), self)
        self._outbound.say([frame for frame in turn.items if self._voice.may_say(frame)])
        self._outbound.pump()
        self._arm()

    def _end(self, why: str) -> None:
        self._alarm.cancel()
        self.stats.reject("closed", len(self._translator.finish(self._loop.time())))
        super()._end(why)
