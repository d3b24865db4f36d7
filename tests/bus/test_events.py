"""Events as frames: what is too long is cut, says so, and stays JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.events import Event, read_event
from bus.wire.frame import DATA_BYTES_MAX, unpack

SHORT = Event(1, "link", "gw", "up", {"losses": 2})
texts = st.text(st.characters(), max_size=3).map(lambda text: text * 900) | st.text()
numbers = st.dictionaries(st.text(max_size=20), st.integers(0, 1 << 62), max_size=60)


def data_of(event: Event) -> Any:
    data = unpack(event.frame()).data
    assert len(data) <= DATA_BYTES_MAX
    return json.loads(data)


def test_what_fits_is_not_cut() -> None:
    assert read_event(SHORT.frame()) == SHORT
    room = DATA_BYTES_MAX - len(unpack(SHORT._replace(cause="").frame()).data)
    longest = SHORT._replace(cause="x" * room)
    assert read_event(longest.frame()) == longest


def test_a_long_cause_is_cut_and_says_so() -> None:
    found = read_event(SHORT._replace(cause="x" * 3000).frame())
    assert found == SHORT._replace(cause="x" * 253 + "...")


@pytest.mark.parametrize("letter", ["\0", "\U0001f600", "\udcff", '"'])
def test_fields_whose_letters_take_many_bytes_are_cut_as_far_as_it_takes(letter: str) -> None:
    long = letter * 3000
    found = read_event(Event(1, long, long, long, {"losses": 2}).frame())
    assert found is not None
    assert all(word.endswith("...") for word in (found.kind, found.source, found.cause))
    assert found.counts == {"losses": 2}


def test_counts_that_have_no_room_are_left_out_and_their_number_is_told() -> None:
    many = {f"a long name of a count {number}": number for number in range(100)}
    counts = data_of(SHORT._replace(counts=many))
    left_out = counts["counts"].pop("left out")
    assert left_out == 100 - len(counts["counts"]) > 0


@given(texts, texts, texts, numbers)
def test_any_event_is_read_again(kind: str, source: str, cause: str, counts: dict[str, int]) -> None:
    event = Event(1, kind, source, cause, counts)
    data_of(event)
    found = read_event(event.frame())
    assert found is not None
    for was, text in ((kind, found.kind), (source, found.source), (cause, found.cause)):
        assert text == was or (text.endswith("...") and was.startswith(text[:-3]))
