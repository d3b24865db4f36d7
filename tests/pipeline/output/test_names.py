"""Names beside tokens: in every kind of column, and for tokens without a name."""

import pytest

from bus.names import Names
from bus.wire.pattern import token
from pipeline.output.names import labelled, named

FRIDGE = token("fridge")
TWINS = ("axjgjz", "ziieqj")
ROW = {
    "bus": "plant",
    "token1": FRIDGE,
    "token2": None,
    "tokens": [FRIDGE, 2],
    "token": token(TWINS[0]),
    "rows": 9,
}
NAMES = Names(["fridge", *TWINS])


def test_a_column_of_names_stands_beside_each_of_tokens() -> None:
    made = named(ROW, NAMES)
    assert list(made) == [
        "bus", "token1", "name1", "token2", "name2", "tokens", "names", "token", "name", "rows",
    ]  # fmt: skip
    assert {column: made[column] for column in ROW} == ROW
    assert (made["name1"], made["name2"], made["name"]) == ("fridge", None, "axjgjz | ziieqj")
    assert made["names"] == ["fridge", None]
    assert named({"tokens": None}, NAMES) == {"tokens": None, "names": None}


def test_rows_with_names_of_their_own_stay_as_they_are() -> None:
    row = {"token": FRIDGE, "names": ["fridge"]}
    assert named(row, NAMES) == row
    assert labelled(row, NAMES) == {"token": "0x5be18fe4", "names": ["fridge"]}


def test_a_label_is_a_name_or_the_token_in_hex() -> None:
    assert labelled(ROW, NAMES) == {
        "bus": "plant", "token1": "fridge", "token2": None, "tokens": "fridge/0x00000002",
        "token": "axjgjz|ziieqj", "rows": 9,
    }  # fmt: skip


def test_a_frame_without_tokens_has_the_empty_pattern() -> None:
    assert labelled({"token": -1, "tokens": []}, NAMES) == {"token": "/", "tokens": "/"}


def test_messages_without_tokens_and_those_that_are_no_frames_differ() -> None:
    assert [labelled({"token": token}, NAMES) for token in (-1, -2)] == [
        {"token": "/"},
        {"token": "no frame"},
    ]
    assert named({"token": -2}, NAMES) == {"token": -2, "name": None}


@pytest.mark.parametrize("value", ["x", 1.5, ["x"], None])
def test_what_is_no_token_stays_as_it_is(value: object) -> None:
    assert labelled({"token": value, "tokens": value}, Names()) == {"token": value, "tokens": value}
