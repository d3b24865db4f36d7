"""Targets of CAN frames as they are: what comes, what leaves, lists of identifiers, and cannelloni."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from bridges.items import EXTENDED, FD, CanFrame
from bridges.media.can.socketcan import pack_frame, unpack_frame
from bridges.protocols.cannelloni.packet import GREETING
from bridges.protocols.cannelloni.packet import pack_frame as packed
from bridges.protocols.cannelloni.protocol import Cannelloni
from bridges.protocols.raw.protocol import Raw
from bridges.protocols.selection import selection_of
from bridges.protocols.translator import Wire
from bus.ledger import Stats
from bus.wire.frame import is_frame, pack
from bus.wire.notation import pattern_of
from tests.fuzz.target import Pieces, Target, recorded, records

FRAMES: Final[tuple[CanFrame, ...]] = (
    (0x123, b"ab", 0),
    (EXTENDED | 0x18FEF100, bytes(8), 0),
    (0x321, bytes(range(12)), FD),
    (0x40000123, b"", 0),
)
_SETTINGS: Final[dict[str, Any]] = {"root": ("r",), "ids": {"0x123": ("engine", "rpm")}}


@cache
def _raw() -> Raw:
    return Raw(**_SETTINGS, receive=("0x100-0x1ff", "0x18FEF100x"), send=("0x300/0x700",), errors=True)


def _frames(pieces: Pieces) -> object:
    """Let frames of SocketCAN come, and messages leave: those that begin with a zero."""
    stats = Stats()
    made = _raw().translator(Wire("fuzz", "frames", stats))
    found = list[object]()
    for record in records(b"".join(pieces)):
        frame = unpack_frame(record)
        if record[:1] == b"\0" and is_frame(record[1:]):
            items, why, *_ = made.send(record[1:], 0.0)
            found.append(([unpack_frame(pack_frame(one)) == one for one in items], why))
        elif frame is not None:
            found.append(made.receive([frame], 0.0))
    return found, stats.rejected


def _frame_seeds() -> list[bytes]:
    left = [
        b"\0" + pack(1, pattern_of(word), b"x" * 8)
        for word in ("r/0x321", "r/0x321r", "r/0x321/5", "engine/rpm")
    ]
    return [recorded(*map(pack_frame, FRAMES), *left), recorded(*left)]


def _list(pieces: Pieces) -> object:
    found = selection_of(b"".join(pieces).decode("latin-1").split(","))
    return sorted(found.pieces), found.singles(2048)


def _cannelloni(items: Any) -> Callable[[Pieces], object]:
    def feed(pieces: Pieces) -> object:
        stats = Stats()
        made = Cannelloni(**_SETTINGS, send=("all",)).translator(Wire("fuzz", items, stats))
        parts = pieces if items == "bytes" else list(records(b"".join(pieces)))
        found = [message for part in parts for message in made.receive([part], 0.0)]
        made.end(0.0)
        return found, made.over, stats.rejected

    return feed


def _datagram(*frames: CanFrame) -> bytes:
    return bytes((2, 0, 7, 0, len(frames))) + b"".join(map(packed, frames))


TARGETS: Final = (
    Target("raw", "CAN frames, and messages that become some", _frames, _frame_seeds, whole=True,
           grown=lambda n: [recorded(*(pack_frame((i & 0x7FF, b"", 0)) for i in range(n)))]),
    Target("can-identifiers", "lists of CAN identifiers", _list,
           lambda: [b"0x100-0x1ff,0x18FEF100x", b"0x100/0x700, 0x123r,7", b"all"], (ValueError,), whole=True,
           grown=lambda n: [b",".join(b"%d" % (i & 0x7FF) for i in range(n))]),
    Target("cannelloni-udp", "datagrams of cannelloni", _cannelloni("datagrams"),
           lambda: [recorded(_datagram(*FRAMES), _datagram(*FRAMES[:2]), b"\2\1\0\0\0")], whole=True,
           grown=lambda n: [recorded(*(_datagram(FRAMES[0]) for _ in range(n)))]),
    Target("cannelloni-tcp", "the stream of cannelloni", _cannelloni("bytes"),
           lambda: [GREETING + b"".join(map(packed, FRAMES))],
           grown=lambda n: [GREETING + packed(FRAMES[0]) * n]),
)  # fmt: skip
