"""What leaves for a device are frames that publish: a subscription under the same pattern is no command."""

from pathlib import Path
from typing import Any

import pytest

from bridges.protocols import PROTOCOLS
from bridges.protocols.modbus.protocol import Register
from bridges.protocols.protocol import Protocol
from bridges.protocols.queries.protocol import Query
from bridges.protocols.registers.protocol import ChipRegister
from bus.wire.frame import BRIDGE, BROKER, CACHE, PUB, REMOVE, SUB, pack
from bus.wire.notation import pattern_of
from tests.bridges.protocols.dbc.dbc_support import written
from tests.bridges.protocols.spoken_support import translator
from tests.helpers.kinds import has_each

CHIP = ChipRegister(target=0x48, register=0, type="ascii", size=4, pattern=("a",), write=True)
NAME = Register(register=0, type="ascii", length=4, pattern=("a",), write=True)
QUERY = Query(ask="A?", pattern=("a",), template="A {data}", write=True, low=0, high=9)
SENDING: dict[str, tuple[dict[str, Any], str, bytes]] = {
    "registers": ({"registers": (CHIP,)}, "a/set", b""),
    "modbus": ({"registers": (NAME,)}, "a/set", b""),
    "queries": ({"queries": (QUERY,)}, "a/set", b"1"),
    "lines": ({"send": ("a",)}, "a", b"x"),
    "nmea": ({"send": ("a",)}, "a", b"PUBX,00"),
    "jsonl": ({"send": ("a",)}, "a", b"1"),
    "slip": ({"send": ("a",)}, "a", b"x"),
    "bytes": ({"send": ("a",)}, "a", b"x"),
    "xbee": ({"root": ("a",), "send": ("all",)}, "a/all", b"x"),
    "dbc": ({"root": ("a",), "send": ("Gearbox",), "initial": {"Gear": 1}}, "a/Gearbox/Oil", b"1"),
    "raw": ({"root": ("a",), "send": ("all",)}, "a/0x123", b""),
    "cannelloni": ({"root": ("a",), "send": ("all",)}, "a/0x123", b""),
}
"""How each protocol is told to send, and a frame that leaves: its pattern and data."""

LISTENING = {"vedirect", "p1"}
"""Those that send nothing."""


def sending(key: str, folder: Path) -> Protocol:
    """Return the record of a protocol that sends."""
    kind = PROTOCOLS.find(key)
    assert kind is not None
    settings = dict(SENDING[key][0])
    if key == "dbc":
        settings["file"] = str(written(folder))
    return kind(**settings)


@pytest.mark.parametrize("key", list(SENDING))
def test_only_frames_that_publish_leave(key: str, tmp_path: Path) -> None:
    """A node that subscribed to the commands for a text in a device once wrote zeros there."""
    record = sending(key, tmp_path)
    _, pattern, data = SENDING[key]
    tokens = pattern_of(pattern)
    assert translator(record, record.items[0]).send(pack(PUB, tokens, data), 0.0).why == ""
    for kind in (0, SUB, CACHE, REMOVE, BROKER, BRIDGE, PUB | SUB, SUB | REMOVE):
        made = translator(record, record.items[0])
        assert made.send(pack(kind, tokens, data), 0.0).why == "not sent here"
        assert (list(made.turn(0.0).messages), made.settled) == ([], [])


def test_this_has_each_protocol() -> None:
    ours = (key for key, kind in PROTOCOLS.known() if kind.MAKE.startswith("bridges."))
    has_each("SENDING, or LISTENING,", {*SENDING, *LISTENING}, ours)


def test_few_protocols_ask_or_name_or_hold_or_say_no_source_and_with_few_a_standby_knows_what_was_sent() -> (
    None
):
    ours = {key: kind for key, kind in PROTOCOLS.known() if kind.MAKE.startswith("bridges.")}
    assert {key for key, kind in ours.items() if kind.asks} == {"modbus", "queries", "registers"}
    assert {key for key, kind in ours.items() if kind.named} == {"lines"}
    assert {key for key, kind in ours.items() if kind.holds} == {"xbee"}
    assert {key for key, kind in ours.items() if kind.sourceless} == {"dbc", "raw"}
    assert {key for key, kind in ours.items() if not kind.deaf} == {"raw"}


@pytest.mark.parametrize("key", sorted(LISTENING))
def test_a_protocol_that_listens_has_no_way_out(key: str) -> None:
    kind = PROTOCOLS.find(key)
    assert kind is not None
    record = kind()
    assert record.way.outward == ()
    made = translator(record, record.items[0])
    assert made.send(pack(PUB, pattern_of(f"{key}/V"), b"1"), 0.0).why == "not sent here"
