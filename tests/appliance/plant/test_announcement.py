"""A note goes into one frame, whatever the gateway has, and is read as far as it goes."""

import json

import pytest

from appliance.plant.announcement import announced, note_in
from appliance.plant.note import Note, note_of
from appliance.status.overlay import shown_marks
from bus.announcements import NOTE, read
from bus.keys import Keyring
from bus.wire.frame import FRAME_BYTES_MAX, PUB, pack
from tests.appliance.plant.plant_support import role, status
from topologies.picture.marks import Mark

EDGE = Mark("ok", "", ("to a 12/s", "from a 3/s"), ("dropped 5 queue full",), ("12/s", "3/s"))


def read_back(frame: bytes) -> Note | None:
    said = read(frame)
    assert said is not None
    return note_in(said)


def test_a_note_is_read_as_it_was_announced_with_the_texts_and_rates_of_its_things() -> None:
    note = note_of(status(candidates=[role()], page="http://h:1"))
    marks = {
        "bus a": Mark("ok", "", ("3 peers", "15/s")), "bus b": Mark("bad", "waiting"), "bus c": Mark("ok"),
        "a to b": EDGE,
    }  # fmt: skip
    said = read_back(announced(note, marks))
    asked = shown_marks(marks)
    shown = ("state", "text", "ways")
    assert said is not None
    assert {key: said[key] for key in note} == note
    assert {name: {key: mark[key] for key in shown} for name, mark in said["marks"].items()} == {
        name: {key: mark[key] for key in shown} for name, mark in asked.items()
    }


@pytest.mark.parametrize("long", ["x" * 4000, "\u2028" * 4000], ids=["ascii", "escaped"])
def test_what_does_not_fit_is_left_out(long: str) -> None:
    roles = [role(lease=f"motor {number}") for number in range(64)]
    health = {"word": "trouble", "line": long}
    marks = {f"bridge {number} on gw-a": Mark("ready", long) for number in range(500)}
    note = note_of(status(candidates=roles, health=health))
    frame = announced(note, marks, Keyring([b"1" * 32]))
    assert len(frame) <= FRAME_BYTES_MAX
    found = read_back(frame)
    assert found is not None
    assert found["health"]["word"] == "trouble"
    assert found["roles"] == note["roles"][: len(found["roles"])]
    assert len(found["roles"]) > 5


@pytest.mark.parametrize("things", [10, 30, 60, 500])
def test_what_is_bad_is_said_first_and_names_go_before_texts(things: int) -> None:
    marks = {f"bus {number}": EDGE for number in range(things)} | {"last": Mark("bad", "waiting: refused")}
    frame = announced(note_of(status()), marks, Keyring([b"1" * 32]))
    assert len(frame) <= FRAME_BYTES_MAX
    found = read_back(frame)
    assert found is not None
    said = found["marks"]
    assert (said["last"]["state"], said["last"]["text"]) == ("bad", "waiting: refused")
    assert len(said) == things + 1 if things < 100 else 100 < len(said) < things
    told = sum(bool(mark["ways"]) for mark in said.values())
    assert told == things if things == 10 else 0 <= told < things


def test_a_page_of_a_great_length_is_left_out() -> None:
    note = note_of(status(page="http://" + "x" * 1900, candidates=[role()]))
    found = read_back(announced(note, {"bus a": Mark("ok")}))
    assert found is not None
    assert (found["page"], len(found["roles"]), list(found["marks"])) == ("", 1, ["bus a"])


@pytest.mark.parametrize(
    "change",
    [
        {"product": 1},
        {"roles": [["b"]]},
        {"roles": [[1, 2, 3, 4, 5, 6]]},
        {"marks": {"ok": [["bus a", 7]]}},
        {"marks": {"ok": [["bus a", "up", 7]]}},
        {"marks": {"ok": [[]]}, "file": None},
    ],
)
def test_what_is_of_no_gateway_is_no_note(change: dict[str, object]) -> None:
    fields = {**note_of(status()), "roles": [], "health": ["ok", "ok"], **change}
    said = read(pack(PUB, NOTE, json.dumps(fields).encode()))
    assert said is not None
    assert note_in(said) is None
