"""A note goes into one frame, whatever the gateway has, and is read as far as it goes."""

import json

import pytest

from appliance.plant.announcement import announced, note_in
from appliance.plant.note import Note, note_of
from bus.announcements import NOTE, read
from bus.keys import Keyring
from bus.wire.frame import FRAME_BYTES_MAX, PUB, pack
from tests.appliance.plant.plant_support import role, status

MARK = {"state": "ok", "text": "", "lines": [], "ways": []}


def read_back(frame: bytes) -> Note | None:
    said = read(frame)
    assert said is not None
    return note_in(said)


def test_a_note_is_read_as_it_was_announced() -> None:
    note = note_of(status(candidates=[role()], page="http://h:1"))
    states = {"bus a": "ok", "bus b": "bad", "bus c": "ok"}
    marks = {name: {**MARK, "state": state} for name, state in states.items()}
    assert read_back(announced(note, states)) == note | {"marks": marks}


@pytest.mark.parametrize("long", ["x" * 4000, "\u2028" * 4000], ids=["ascii", "escaped"])
def test_what_does_not_fit_is_left_out(long: str) -> None:
    roles = [role(lease=f"motor {number}") for number in range(64)]
    health = {"word": "trouble", "line": long}
    states = {f"bridge {number} on gw-a": "ready" for number in range(500)}
    note = note_of(status(candidates=roles, health=health))
    frame = announced(note, states, Keyring([b"1" * 32]))
    assert len(frame) <= FRAME_BYTES_MAX
    found = read_back(frame)
    assert found is not None
    assert found["health"]["word"] == "trouble"
    assert found["roles"] == note["roles"][: len(found["roles"])]
    assert len(found["roles"]) > 5


def test_a_page_of_a_great_length_is_left_out_and_so_is_all_else() -> None:
    note = note_of(status(page="http://" + "x" * 1900, candidates=[role()]))
    found = read_back(announced(note, {"bus a": "ok"}))
    assert found is not None
    assert (found["page"], found["roles"]) == ("", [])


@pytest.mark.parametrize(
    "change",
    [
        {"product": 1},
        {"roles": [["b"]]},
        {"roles": [[1, 2, 3, 4, 5, 6]]},
        {"marks": {"ok": [[]]}, "file": None},
    ],
)
def test_what_is_of_no_gateway_is_no_note(change: dict[str, object]) -> None:
    fields = {**note_of(status()), "roles": [], "health": ["ok", "ok"], **change}
    said = read(pack(PUB, NOTE, json.dumps(fields).encode()))
    assert said is not None
    assert note_in(said) is None
