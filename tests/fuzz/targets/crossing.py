"""Targets that take whole messages of a bus: a bridge, and the rows of a capture."""

from typing import Final

from bridges.bridge import Bridge, Policy
from bridges.front.hub import FrontHub
from bridges.front.settings import Front, Limit
from bus.balance import imbalances
from bus.renaming import Renaming
from bus.wire.batch import from_payloads
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


_FRONT: Final = Front(
    Renaming(("fridge",), ((("temp",), ("t",)), ((7,), ("t", "u"))), ("p",)),
    refresh_s=1.0,
    limits=(Limit(("p", "t"), 100.0), Limit((), 10.0, outward=True)),
    opaque=("p", "words"),
)


def _fronted(pieces: Pieces) -> object:
    """Let messages cross a side with other names, limits and opaque messages, and back. Ledgers balance."""
    now_s = 0.0
    bridge = Bridge("b", 0xB, clock=lambda: now_s, sequence=41)
    plain, trunk = (
        bridge.side("plain", Policy(opaque=True)),
        bridge.side("trunk", Policy(trunk=True, opaque=True)),
    )
    door = FrontHub(trunk, _FRONT)
    ears = recorder(plain), recorder(door)
    messages = list(records(b"".join(pieces)))
    for hub, ear in ((door, ears[1]), (plain, ears[0]), (door, ears[1])):
        say(hub, ear, *messages)
        for message in messages:
            now_s += 0.01
            say(hub, ear, message)
    assert imbalances((bridge,)) == []
    return [ear.messages for ear in ears]


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
        inputs=2_000,
        why="0.3 ms an input: two buses and a bridge are made",
    ),
    Target(
        "fronts",
        "messages that cross a side with other names and limits, both ways",
        _fronted,
        _seeds,
        whole=True,
        inputs=2_000,
        why="0.5 ms an input: a bridge and a front are made",
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
