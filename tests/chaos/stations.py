"""Applications on the buses and nodes on the media: they send numbered frames, and note what they hear."""

import hashlib
import zlib
from asyncio import AbstractEventLoop
from collections.abc import Callable
from random import Random
from struct import Struct
from typing import NamedTuple

from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.multicast.link import MulticastLink
from bridges.media.multicast.medium import Multicast
from bridges.media.uart.link import UartLink
from bridges.media.uart.medium import Uart
from bridges.rules import Seen
from bus.hub import Hub, Link, Pipe
from bus.ledger import Stats
from bus.transports.links import make_link
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, split, wrap
from bus.wire.frame import PUB, pack, unpack
from bus.wire.pattern import Pattern
from tests.chaos.clock import clock

WORDS = ("motor", "lamp", "panel")
_BODY = Struct(">III")  # station, number, CRC-32 of the rest


class Key(NamedTuple):
    """A frame that a station sent."""

    word: str
    sender: str
    number: int


class _Ear(Hub):
    """Notes when its links opened, in seconds."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.opened_s: list[float] = []

    def attach(self, pipe: Pipe) -> None:
        self.opened_s.append(clock.now_s)
        super().attach(pipe)


class Station(Pipe):
    """An application on a link. `sent` and `heard` have the times of each frame, in seconds."""

    def __init__(self, name: str, link: Link, words: tuple[str, ...], number: int, enveloped: bool) -> None:
        self.name, self.words, self.end = name, words, link
        self.link, self.stats, self.hub = name, Stats(), _Ear(name)
        self.sent: dict[Key, float] = {}
        self.heard: dict[Key, list[float]] = {}
        self.broken = self.remembered = self.strange = self._returned = 0
        self.digest = hashlib.sha256()
        self._number, self._next, self._seen = number, 0, Seen()
        self._envelopes = Random(f"envelopes {number}").getrandbits(32) if enveloped else 0
        self.hub.attach(self)

    def has_dialled_since(self, sent_s: float, heard_s: float) -> bool:
        """Tell whether a plain program has opened its link anew between two times: to a gateway that
        stood still it is a stranger to what it said before (docs/policies.md, self-echo).
        """
        return not self._envelopes and any(sent_s < at_s <= heard_s for at_s in self.hub.opened_s)

    def open(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self.end.open(self.hub, loop)

    def say(self, word: str, rest: bytes) -> Key:
        """Send the next frame; return its key."""
        key, now = Key(word, self.name, self._next), self._loop.time()
        self._next += 1
        frame = pack(PUB, Pattern(word), _BODY.pack(self._number, key.number, zlib.crc32(rest)) + rest)
        message = wrap(frame, Envelope(self._envelopes, key.number)) if self._envelopes else frame
        self.sent[key] = now
        self.hub.publish(from_payloads([message]), self)
        return key

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        self._seen.advance(self._loop.time())
        for message in payloads(batch):
            found = split(message)
            if found is None:
                self.strange += 1
            elif found[0] is not None and self._knows(found[0]):
                self.remembered += 1
                self._returned += found[0].origin == self._envelopes
            else:
                self._hear(found[1])

    def _knows(self, envelope: Envelope) -> bool:
        """Tell whether a frame is our own, or came before, as an appliance would."""
        return envelope.origin == self._envelopes or not self._seen.add(envelope.key)

    def _hear(self, frame: bytes) -> None:
        found = unpack(frame)
        word = next((word for word in WORDS if Pattern(word) == tuple(found.tokens)), "")
        if not word:  # what the plant says itself
            return
        station, number, check = _BODY.unpack_from(found.data)
        if zlib.crc32(found.data[_BODY.size :]) != check:
            self.broken += 1
            return
        now = self._loop.time()
        self.heard.setdefault(Key(word, NAMES[station], number), []).append(now)
        self.digest.update(f"{now:.9f} {word} {station} {number}\n".encode())

    def take_returned(self) -> int:
        """Return how many of its own envelopes have come back since the last call. It knows them, as an
        appliance would; a smaller device may not."""
        found, self._returned = self._returned, 0
        return found

    def forget(self, before_s: float) -> None:
        """Forget the frames that were sent, and those that were heard last, before a time."""
        self.sent = {key: at for key, at in self.sent.items() if at >= before_s}
        self.heard = {key: times for key, times in self.heard.items() if times[-1] >= before_s}

    def close(self) -> None:
        self.end.close()


NAMES = ("hall-a", "hall-b", "hall-c", "can", "lan", "line")
_URLS = {"hall-a": "tcp://10.0.0.1:5555", "hall-b": "tcp://10.0.0.2:5555", "hall-c": "tcp://10.0.0.3:5555"}
_MEDIA: dict[str, tuple[str, Callable[[], Link]]] = {
    "can": ("motor", lambda: CanLink(Can(interface="virtual", channel="can0", node=99, fd=True))),
    "lan": ("lamp", lambda: MulticastLink(Multicast(group="239.0.0.1", port=9943, interface="eth0"))),
    "line": ("panel", lambda: UartLink(Uart(port="ttyS0"))),
}


def stations() -> dict[str, Station]:
    """Make one application for each bus, and one node for each medium. Only that on CAN sends envelopes."""
    made = dict[str, Station]()
    for number, name in enumerate(NAMES):
        if name in _URLS:
            made[name] = Station(name, make_link(_URLS[name], "dial"), WORDS, number, False)
        else:
            word, link = _MEDIA[name]
            made[name] = Station(name, link(), (word,), number, name == "can")
    return made


def receivers(key: Key) -> list[str]:
    """Return the names of the stations that a frame is for."""
    media = [name for name, (word, _) in _MEDIA.items() if word == key.word]
    return [name for name in (*_URLS, *media) if name != key.sender]
