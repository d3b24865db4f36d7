import json
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.probe.words import type_of, type_word
from bus.errors import BusError
from bus.wire.pattern import hexadecimal, token

TWINS = ("axjgjz", "ziieqj")


def test_prints_decimal_and_hex(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokens", "fridge", "0x10", '"7"']) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["1541509092", "0x5be18fe4", "fridge"],
        ["16", "0x00000010", "0x00000010"],
        ["55", "0x00000037", '"7"'],
    ]


def test_two_names_with_one_token_are_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = TWINS
    assert main(["tokens", one, other, "fridge", "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["collisions"] == [{"token": token(one), "names": [one, other]}]
    assert [row["token"] for row in json.loads(out)["tokens"]] == [token(one), token(one), token("fridge")]
    assert f"{one} and {other} share the token {hexadecimal(token(one))}: rename one" in err


def test_a_number_collides_with_the_name_that_hashes_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokens", "fridge", str(token("fridge"))]) == 1
    assert main(["tokens", "fridge", "fridge"]) == 0
    assert "share the token" in capsys.readouterr().err


def test_names_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "names"
    file.write_text("# ours\nfridge   # the cold one\n\nC#1\n")
    assert main(["tokens", "--names", str(file), "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)["tokens"]] == ["fridge", "C#1"]


def test_a_token_is_looked_up_in_a_topology(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "names.txt").write_text("fridge")
    file = tmp_path / "plant.yaml"
    file.write_text("name: t\ngateways: {gw: {}}\nnames: {file: names.txt, list: [door]}")
    assert main(["tokens", hexadecimal(token("fridge")), "--names", str(file), "--names", "lamp,door"]) == 0
    words = [line.split()[2] for line in capsys.readouterr().out.splitlines()]
    assert words == ["fridge", "door", "fridge", "lamp"]


def test_reserved_names_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokens", hexadecimal(token("takeover"))]) == 0
    assert capsys.readouterr().out.split()[2] == "takeover"


@pytest.mark.parametrize("words", [[], ["4294967296"], ["--names", "/does/not/exist"]])
def test_wrong_use_is_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["tokens", *words])
    assert stopped.value.code == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["recv", "tcp://127.0.0.1:1", "--pattern", "#"],
        ["send", "tcp://127.0.0.1:1", "fridge/+/x"],
        ["traffic", "tcp://127.0.0.1:1", "--pattern", "fridge/*"],
    ],
)
def test_wildcards_of_other_systems_get_a_hint(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert "is no wildcard here: a pattern matches every frame that starts with it" in capsys.readouterr().err


@pytest.mark.parametrize(("word", "kind"), [("pub", 1), ("PUB+cache", 5), ("bridge", 128), ("255", 255)])
def test_types(word: str, kind: int) -> None:
    assert type_of(word) == kind
    assert type_of(type_word(kind)) == kind


@pytest.mark.parametrize("word", ["", "pubs", "pub+", "256", "-1"])
def test_words_that_are_no_type(word: str) -> None:
    with pytest.raises(BusError, match="a type is pub"):
        type_of(word)
