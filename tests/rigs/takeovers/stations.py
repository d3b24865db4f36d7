"""The applications at both ends of a rig: each sends numbered frames, and notes what it hears."""

import asyncio
import random
from collections import Counter
from math import inf
from struct import Struct
from typing import Final

from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.uart.link import UartLink
from bridges.media.uart.medium import Uart
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.raw.protocol import Raw
from bus.hub import Hub, Link, Pipe
from bus.key_types import pattern_in
from bus.ledger import Stats
from bus.transports.links import make_link
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, split, wrap
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.rigs.takeovers.rig import KEPT, Rig

BODY = Struct(">I")
PATTERN = Pattern("motor")
WINDOWS_S: Final = {"raw": 0.1, "lines": 0.0}
"""What a standby sends at a takeover of frames that go to devices: on CAN those of `age_ms`, which is 100; of
what went to a device by another gateway's wire it hears nothing."""


class Notes:
    """It notes what an application at one end has sent, and when it received each number.

    Of what it sends, a takeover may give up what is older than `window_s` and was not sent before the fault.
    """

    def __init__(self, token: int, window_s: float = inf) -> None:
        self.token, self.window_s = token, window_s
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

    def drops(self) -> Counter[str]:
        """Count what this end itself has given up, by reason."""
        return Counter()

    def close(self) -> None:
        """Stop, and hear nothing more."""
        raise NotImplementedError


class Station(Notes, Pipe):
    """An application on a link. It sends numbered frames, and notes when it received each number."""

    def __init__(self, token: int, link: Link, envelopes: bool, window_s: float = inf) -> None:
        super().__init__(token, window_s)
        self.name, self.stats = "station", Stats()
        self.hub, self.end = Hub(), link
        self.keys: set[int] = set()
        self._envelopes, self._origin = envelopes, random.getrandbits(32)
        self.hub.attach(self)
        link.open(self.hub, asyncio.get_running_loop())

    def say(self) -> None:
        now = asyncio.get_running_loop().time()
        frame = pack(PUB, (*PATTERN, self.token), self.body(len(self.sent)))
        message = wrap(frame, Envelope(self._origin, len(self.sent))) if self._envelopes else frame
        self.sent.append(now)
        self.hub.publish(from_payloads([message]), self)

    def drops(self) -> Counter[str]:
        """Count what this end has given up, or refused, at its link."""
        found = Counter[str]()
        for account in self.hub.accounts().values():
            found.update(account.stats.dropped)
            found.update(account.stats.rejected)
        return Counter({f"{reason} at an end": n for reason, n in found.items() if reason not in KEPT})

    def body(self, number: int) -> bytes:
        """Return the data of a frame."""
        return BODY.pack(number) + b"." * 36

    def number(self, data: bytes) -> int:
        """Return the number in the data of a frame."""
        return int(BODY.unpack_from(data)[0])

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
        self.note(token, self.number(data), now)

    def close(self) -> None:
        """Close the link."""
        self.end.close()


class Plain(Station):
    """A station whose data fit a frame of CAN and a line of text."""

    def body(self, number: int) -> bytes:
        return b"%08d" % number

    def number(self, data: bytes) -> int:
        return int(data)


def near_station(rig: Rig) -> Station:
    """Return the station on the bus."""
    kind = Plain if rig.medium in WINDOWS_S else Station
    window_s = WINDOWS_S.get(rig.medium, inf)
    return kind(1, make_link(f"tcp://127.0.0.1:{rig.door}", "dial"), False, window_s)


def far_station(rig: Rig) -> Station:
    """Return the station at the other end."""
    return (Plain if rig.medium in WINDOWS_S else Station)(2, far_link(rig), rig.envelopes)


def far_link(rig: Rig) -> Link:
    if rig.line is not None and rig.medium == "lines":
        port = Uart(port=str(rig.line.paths[2]), baud=921600, exclusive=False)
        return port.speaking(Lines(receive=pattern_in("motor/1"), send=pattern_in("motor/2")))
    if rig.line is not None:
        return UartLink(Uart(port=str(rig.line.paths[2]), baud=921600, exclusive=False))
    options = {"port": rig.can_port, "hop_limit": 0}
    can = Can(interface="udp_multicast", channel="239.74.163.58", node=99, fd=True, options=options)
    return can.speaking(Raw(root=PATTERN, receive=(1,), send=(2,))) if rig.medium == "raw" else CanLink(can)
