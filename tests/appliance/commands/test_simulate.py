"""`buscoupler simulate`: the outcome of traffic and faults, and what is refused."""

from pathlib import Path

import pytest

from appliance.commandline.cli import main
from tests.appliance.simulated.simulated_support import spoken, text


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "plant.yaml").write_text(text())
    return str(tmp_path / "plant.yaml")


def test_it_tells_what_crossed_what_was_lost_and_who_took_over(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--traffic", "can0=motor@10", "--at", "fail gw-a@1", "--at", "cut can0@2.95", "--seconds", "4"]
    assert main(["simulate", file, *words]) == 0
    out = capsys.readouterr().out
    assert "fail gw-a" in out
    assert "bridge motor: gw-b forwards" in out
    assert "motor at can0, 10 a second: 40 sent" in out
    assert "hall: 30 heard, 10 lost, 0 doubled" in out


def test_the_status_is_1_if_nothing_crosses(file: str) -> None:
    words = ["--traffic", "hall=other@1", "--seconds", "2"]  # the bridge lets only motor through
    assert main(["simulate", file, *words]) == 1


NUMBER, DEED = "is not a number above 0 and at most", "write 'fail GATEWAY@SECONDS'"


@pytest.mark.parametrize(("words", "told"), [
    ([], "nothing is sent"), (["--traffic", "x"], "write PLACE=PATTERN@RATE"),
    (["--traffic", "can0=motor@0"], NUMBER), (["--traffic", "can0=motor@nan"], NUMBER),
    (["--traffic", "can0=motor@fast"], NUMBER), (["--traffic", "can0=motor@1", "--at", "burn gw-a@1"], DEED),
    (["--traffic", "can0=motor@1", "--at", "fail gw-a"], DEED),
    (["--traffic", "can0=motor@1", "--traffic", "hall=motor@2"], "cannot be told apart"),
    (["--traffic", "can0=a@1", "--traffic", "hall=0x61@2"], "cannot be told apart"),
    (["--traffic", "can0=motor@1", "--at", "fail gw-a@99"], "the run ends before"),
])  # fmt: skip
def test_words_without_sense_are_refused_with_what_to_write(
    file: str, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", file, *words])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("pattern", ["motor/speed", "0x20000000"])
def test_what_is_no_identifier_of_a_wire_of_raw_frames_is_told(
    tmp_path: Path, pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spoken.yaml").write_text(spoken())
    assert main(["simulate", str(tmp_path / "spoken.yaml"), "--traffic", f"can0={pattern}@1"]) != 0
    assert "is no identifier of CAN" in capsys.readouterr().err


def test_a_place_that_is_not_there_is_told(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", file, "--traffic", "nowhere=motor@1"]) == 1
    assert "no place nowhere; there is hall, can0" in capsys.readouterr().err
