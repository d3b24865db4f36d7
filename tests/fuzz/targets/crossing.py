"""Targets that take whole messages of a bus: a bridge, and the rows of a capture."""

from typing import Final

from bridges.bridge import Bridge
from bridges.front.hub import FrontHub
from bridges.front.settings import Front, Limit
from bridges.policy import Policy
from bus.balance import imbalances
from bus.hub import Hub
from bus.renaming import Renaming
from bus.wire.batch import from_payloads
from bus.wire.envelope import take_apart
from capture.reader import message_of
from capture.schema import Kind, arrow_schema
from devices.tap.ring import RecordPlace, Ring
from devices.tap.rows import Rows
from tests.bridges.support import recorder, say
from tests.fuzz.target import Pieces, Target, recorded, records
from tests.fuzz.targets.streams import FRAMES, STAMPED


def _crossed(pieces: Pieces) -> object:
    """Let messages cross a bridge from a plain bus to a trunk, and back. The ledgers balance."""
    bridge = Bridge("b", 0xB, clock=lambda: 0.0, sequence=41)
    plain, trunk = bridge.side("plain"), bridge.side("trunk", Policy(trunk=True))
    ears = recorder(plain), recorder(trunk)
    messages = list(records(b"".join(pieces)))
    for side, ear in ((plain, ears[0]), (trunk, ears[1])):
        say(side, ear, *messages)
        for message in messages:
            say(side, ear, message)
    assert imbalances((plain, trunk)) == []
    return [ear.messages for ear in ears]


FRONTS: Final = (
    Front(
        Renaming(("fridge",), ((("temp",), ("t",)), ((7,), ("t", "u"))), ("p",)),
        refresh_s=1.0,
        limits=(Limit(("p", "t"), 100.0), Limit((), 10.0, outward=True)),
        opaque=("p", "words"),
    ),
    Front(Renaming(prefix=("p", 2))),
    Front(Renaming(strip=(1,))),
    Front(Renaming(strip=2)),
    Front(Renaming(rename=(((1,), (7,)), ((7,), (1,))))),
    Front(refresh_s=0.5),
    Front(limits=(Limit((1, 2), 3.0), Limit((7,), 2.0, outward=True), Limit((), 50.0))),
    Front(opaque=(7, 7)),
)
"""A front with all settings, and one with each."""


def _fronted(pieces: Pieces) -> object:
    """Let messages enter or leave by a side with a front; the first byte of the input chooses which.

    A batch is as its messages alone. Ledgers balance.
    """
    data = b"".join(pieces)
    messages, first = list(records(data[1:])), data[0] if data else 0
    rooms = [_Fronted(FRONTS[first % len(FRONTS)], bool(first // len(FRONTS) & 1)) for _ in range(2)]
    for _ in range(2):
        rooms[0].say(messages)
        for message in messages:
            rooms[1].say([message])
        for room in rooms:
            room.now_s += 0.6
    heard = [list(map(_unnumbered, room.ear.messages)) for room in rooms]
    assert heard[0] == heard[1]
    assert rooms[0].counts() == rooms[1].counts()
    return heard[0]


def _unnumbered(message: bytes) -> bytes:
    """Return a message without the number of our envelope: a batch takes numbers in another order."""
    parts = take_apart(message)
    return message if parts.envelope is None or parts.envelope.origin != 0xB else parts.content


class _Fronted:
    """A bridge of a trunk with a front and a plain side. Messages come in by one, and an ear is at the other.

    Only one way: equal messages both ways look like a loop, and wait.
    """

    def __init__(self, front: Front, leaving: bool) -> None:
        self.now_s = 0.0
        self.bridge = Bridge("b", 0xB, clock=lambda: self.now_s, sequence=41)
        door = FrontHub(self.bridge.side("trunk", Policy(trunk=True, opaque=True)), front)
        plain = self.bridge.side("plain", Policy(opaque=True))
        far: Hub = door if leaving else plain
        self._entry: Hub = plain if leaving else door
        self._mouth, self.ear = recorder(self._entry), recorder(far)

    def say(self, messages: list[bytes]) -> None:
        """Let messages enter."""
        say(self._entry, self._mouth, *messages)
        assert imbalances((self.bridge,)) == []

    def counts(self) -> object:
        """Return what was rejected and dropped, by reason."""
        accounts = self.bridge.accounts().values()
        return [(dict(one.stats.rejected), dict(one.stats.dropped)) for one in accounts]


_PLACE: Final = RecordPlace("bus plant", "bus plant", "peer", 0).encode()


def _rows(pieces: Pieces) -> object:
    """Make rows of messages. Each comes back, byte for byte."""
    messages = list(records(b"".join(pieces))) or [b""]
    ring = Ring.create(1 << 18)
    batch = from_payloads(messages)
    assert ring.put(Kind.FRAME, _PLACE, batch.count, 1, 1, batch.data)
    made = Rows(arrow_schema(), 7).of(list(ring.records(ring.head)))
    found = [message_of(row) for one in made for row in one.batch.to_pylist()]
    del made
    ring.close()
    assert found == messages
    return found


def _seeds() -> list[bytes]:
    odd = b"\xe1\x08\xf0\x00" + bytes(9)
    return [
        recorded(*FRAMES, *STAMPED),
        recorded(*[FRAMES[0]] * 20, *STAMPED),
        recorded(odd, FRAMES[0], b"", odd[:3]),
    ]


TARGETS: Final = (
    Target(
        "crossing",
        "messages that cross a bridge, from and to a trunk",
        _crossed,
        _seeds,
        whole=True,
    ),
    Target(
        "fronts",
        "messages that cross a side with other names and limits, both ways",
        _fronted,
        lambda: [bytes((n,)) + _seeds()[n % 3] for n in range(2 * len(FRONTS))],
        whole=True,
        inputs=500,
        size=512,
        why="1 ms an input: two bridges with fronts are made",
    ),
    Target(
        "rows",
        "messages as rows of a capture",
        _rows,
        _seeds,
        whole=True,
        inputs=500,
        why="1 ms an input: Arrow makes the rows",
    ),
)
