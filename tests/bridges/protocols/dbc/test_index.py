"""The message of a frame, by its identifier."""

from dataclasses import replace

import pytest

from bridges.items import EXTENDED, REMOTE
from bridges.protocols.dbc.database import load
from bridges.protocols.dbc.index import Index, filters_of
from tests.bridges.protocols.dbc.dbc_support import CAR, TRUCK

MESSAGES = [*load(CAR, "dbc").messages.values(), *load(TRUCK, "dbc").messages.values()]
FRAMES = [
    (0x100, "EngineData"),
    (0x101, None),
    (EXTENDED | 0x10100, None),
    (EXTENDED | 0x0CF00400, "EEC1"),
    (EXTENDED | 0x18F00427, "EEC1"),
    (EXTENDED | 0x18FECA27, "Faults"),
    (EXTENDED | 0x0C002103, "Demand"),
    (EXTENDED | 0x0C012103, None),
]


@pytest.mark.parametrize(("identifier", "name"), FRAMES)
def test_a_message_is_found_and_a_filter_lets_its_frames_through(identifier: int, name: str | None) -> None:
    message = Index(MESSAGES).find(identifier)
    assert (message and message.name) == name
    filters = filters_of(MESSAGES, True)
    assert filters is not None
    passes = [not (identifier ^ value) & mask for value, mask in filters]
    assert any(passes) == (name is not None)
    assert not any(not ((identifier | REMOTE) ^ value) & mask for value, mask in filters)


def test_the_source_decides_where_several_have_one_pgn() -> None:
    eec1 = load(TRUCK, "dbc").messages["EEC1"]
    made = Index([replace(eec1, name="Other", id=0x0CF00411), eec1, replace(eec1, name="Own", id=0x0CF00427)])
    found = [made.find(EXTENDED | 0x0CF00400 | source) for source in (0x11, 0x27, 0x33)]
    assert [message and message.name for message in found] == ["Other", "Own", "EEC1"]
    assert Index([replace(eec1, name="Other", id=0x0CF00411)]).find(EXTENDED | 0x0CF00433) is not None


def test_too_many_filters_are_none() -> None:
    many = [replace(MESSAGES[0], id=number) for number in range(513)]
    assert filters_of(many, False) is None
    assert filters_of(many[1:], False) is not None
