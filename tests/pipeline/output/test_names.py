"""Names beside tokens: in every kind of column, and for tokens without a name."""

from pipeline.output.names import labelled, named, tokens_in

ROW = {"bus": "plant", "token1": 1, "token2": None, "tokens": [1, 2], "token": 3, "rows": 9}
NAMES = {1: "fridge", 3: "oven | stove"}


def test_tokens_are_found_in_every_column_that_has_some() -> None:
    assert tokens_in([ROW, {"token": 7, "tokens": None, "names": [8]}]) == {1, 2, 3, 7}


def test_a_column_of_names_stands_beside_each_of_tokens() -> None:
    made = named(ROW, NAMES)
    assert list(made) == [
        "bus", "token1", "name1", "token2", "name2", "tokens", "names", "token", "name", "rows",
    ]  # fmt: skip
    assert {column: made[column] for column in ROW} == ROW
    assert (made["name1"], made["name2"], made["name"]) == ("fridge", None, "oven | stove")
    assert made["names"] == ["fridge", None]
    assert named({"tokens": None}, NAMES) == {"tokens": None, "names": None}


def test_a_label_is_a_name_or_the_token_itself() -> None:
    assert labelled(ROW, NAMES) == {
        "bus": "plant", "token1": "fridge", "token2": None, "tokens": "fridge/2", "token": "oven | stove",
        "rows": 9,
    }  # fmt: skip
