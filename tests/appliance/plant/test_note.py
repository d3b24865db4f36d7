"""The note of a gateway: small, of a shape that is checked, and from a status of any version that is read."""

import json

import pytest

from appliance.plant.note import MARKS, NOTE_BYTES, ROLES, note_of, read_note
from tests.appliance.plant.plant_support import role, status

MARK = {"state": "ok", "text": "up", "lines": [], "ways": []}


def test_a_note_is_read_as_it_was_made() -> None:
    made = note_of(status(candidates=[role()]), {"bus a": MARK})
    assert read_note(json.dumps(made).encode()) == made
    assert made["roles"][0]["lease"] == "motor"


def test_a_note_is_bounded_whatever_the_gateway_has() -> None:
    many = {f"bus {number:0200}": MARK for number in range(2000)}
    line = {"word": "trouble", "line": "x" * 10_000}
    made = note_of(status(candidates=[role()] * 1000, health=line), many)
    assert (len(made["roles"]), len(made["marks"])) == (ROLES, MARKS)
    assert len(json.dumps(made)) < NOTE_BYTES


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"[]", b"{}", b"[" * 100_000, json.dumps(note_of(status(time_ns=1 << 70))).encode()],
)
def test_what_is_no_note_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no gateway of this version"):
        read_note(data)


def test_a_status_of_an_older_gateway_has_no_hash_and_no_verdict() -> None:
    older = {key: one for key, one in status().items() if key not in ("file", "health")}
    made = note_of(older)
    assert made["file"] == ""
    assert "health" not in made
