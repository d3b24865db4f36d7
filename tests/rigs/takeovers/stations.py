"""The applications at both ends of a rig: each sends numbered frames, and notes what it hears."""

import asyncio
import random
from struct import Struct

from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.uart.link import UartLink
from bridges.media.uart.medium import Uart
from bus.hub import Hub, Link, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, split, wrap
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.rigs.takeovers.rig import Rig

BODY = Struct(">Id")
PATTERN = Pattern("motor")


class Notes:
    """It notes what an application at one end has sent, and when it received each number."""

    def __init__(self, token: int) -> None:
        self.token = token
        self.sent: list[float] = []
        self.heard: dict[int, list[float]] = {}
        self.remembered = 0  # copies that a receiver drops because it remembers their keys
        self.strays: dict[int, int] = {}  # number of a frame of ours -> how often it came back

    def say(self) -> None:
        """Send the next number."""
        raise NotImplementedError

    def note(self, token: int, number: int, now: float) -> None:
        if token == self.token:
            self.strays[number] = self.strays.get(number, 0) + 1
        else:
            self.heard.setdefault(number, []).append(now)

    def close(self) -> None:
        """Stop, and hear nothing more."""
        raise NotImplementedError


class Station(Notes, Pipe):
    """An application on a link. It sends numbered frames, and notes when it received each number."""

    def __init__(self, token: int, link: Link, envelopes: bool) -> None:
        super().__init__(token)
        self.name, self.stats = "station", Stats()
        self.hub, self.end = Hub(), link
        self.keys: set[int] = set()
        self._envelopes, self._origin = envelopes, random.getrandbits(32)
        self.hub.attach(self)
        link.open(self.hub, asyncio.get_running_loop())

    def say(self) -> None:
        now = asyncio.get_running_loop().time()
        frame = pack(PUB, (*PATTERN, self.token), BODY.pack(len(self.sent), now) + b"." * 28)
        message = wrap(frame, Envelope(self._origin, len(self.sent))) if self._envelopes else frame
        self.sent.append(now)
        self.hub.publish(from_payloads([message]), self)

    def send(self, batch: Batch) -> None:
        now = asyncio.get_running_loop().time()
        for message in payloads(batch):
            found = split(message)
            if found is not None:
                self._hear(*found, now)

    def _hear(self, envelope: Envelope | None, frame: bytes, now: float) -> None:
        if envelope is not None:
            key = envelope.origin << 32 | envelope.sequence
            if key in self.keys:
                self.remembered += 1
                return
            self.keys.add(key)
        if frame[4:8] != PATTERN[0].to_bytes(4, "big"):
            return
        self.take(int.from_bytes(frame[8:12], "big"), frame[12:], now)

    def take(self, token: int, data: bytes, now: float) -> None:
        """Note a frame of one of the two senders."""
        self.note(token, BODY.unpack_from(data)[0], now)

    def close(self) -> None:
        """Close the link."""
        self.end.close()


def far_link(rig: Rig) -> Link:
    if rig.line is not None:
        return UartLink(Uart(port=str(rig.line.paths[2]), baud=921600, exclusive=False))
    options = {"port": rig.can_port, "hop_limit": 0}
    can = Can(interface="udp_multicast", channel="239.74.163.58", node=99, fd=True, options=options)
    return CanLink(can)
