"""`check` and `run` over one list of topologies that cannot run, and over all that is shipped."""

import subprocess
import sys
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.commands.run import checked
from tests.helpers import ROOT
from tests.topologies.bad import BAD
from topologies.checks.checker import check
from topologies.loading.loader import load

ALONE = """\
name: t
gateways: {gw: {address: 127.0.0.1}}
buses: {p: {on: gw, listen: "tcp://127.0.0.1:5"}, q: {on: gw, listen: "tcp://127.0.0.1:6"}}
bridges: {j: {on: gw, group: g, join: [{bus: p}, {bus: q}]}}
"""
Out = pytest.CaptureFixture[str]


def no_start(*_: object) -> int:
    raise AssertionError("it began to run")


def errors_of(text: str) -> list[str]:
    return [line.removeprefix("buscoupler: ") for line in text.splitlines() if ": error: " in line]


@pytest.mark.parametrize("name", BAD)
def test_run_refuses_in_the_same_words_what_check_finds(
    name: str, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.commands.run.serve", no_start)
    bad, file = BAD[name], tmp_path / "t.yaml"
    file.write_text(bad.text)
    assert main(["check", str(file)]) == 1
    found = errors_of(capsys.readouterr().out)
    assert any(line.startswith(f"{file}:{bad.line}:") and bad.words in line for line in found), found
    words = ["run", str(file), "--gateway", bad.gateway, "--run-directory", str(tmp_path)]
    assert main(words) == 1
    assert errors_of(capsys.readouterr().err) == found


def test_a_warning_is_a_line_of_the_log_with_one_level(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(ALONE)
    checked(str(file))
    (record,) = caplog.records
    text = "bridges.j: bridge j is alone in group g, and nothing stands in for it"
    assert (record.levelname, record.getMessage()) == ("WARNING", f"{file}:4:14: {text}")


def process(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command with `text` as its standard input."""
    command = [sys.executable, "-m", "buscoupler", *words]
    return subprocess.run(command, input=text, capture_output=True, text=True)


def test_a_process_refuses_before_it_opens_anything(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(BAD["broker on WebSocket"].text)
    done = process("run", str(file))
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"{file}:3:" in done.stderr


@pytest.mark.parametrize("command", ["check", "show", "run"])
def test_standard_input_is_a_file_like_any_other(command: str) -> None:
    done = process(command, "-", text=BAD["broker on WebSocket"].text)
    assert done.returncode == 1
    assert "<standard input>:3:" in done.stdout + done.stderr


def test_an_address_for_everybody_is_a_warning_and_no_problem_of_a_start(
    tmp_path: Path, capsys: Out, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(ALONE.replace("127.0.0.1:6", "0.0.0.0:6").replace("group: g, ", ""))
    assert main(["check", str(file)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(
        f"{file}:3:71: warning: buses.q.listen: every machine that reaches tcp://0.0.0.0:6 "
    )
    checked(str(file))
    assert caplog.records == [], "who chose it hears of it when he checks, not at each start"


def test_what_is_right_on_standard_input() -> None:
    done = process("check", "-", text="name: t\ngateways: {a: }\nbuses: {p: {on: a}}\n")
    assert (done.returncode, done.stdout) == (0, "<standard input>: ok\n")


@pytest.mark.parametrize("path", sorted(ROOT.glob("topologies/*.yaml")), ids=lambda path: path.stem)
def test_no_shipped_topology_warns(path: Path) -> None:
    assert [finding for finding in check(load(path)) if finding.level in ("error", "warning")] == []


HEAD = 'VERSION ""\nNS_ :\nBS_:\nBU_: ECU\n'
DATABASES = {
    "syntax": (
        HEAD + 'BO_ 256 E: 8 ECU\n SG_ A : 0|16@1+ (1,0 [0|1] "" X\n',
        'line 6: SG_ A : 0|16@1+ (1,0 [0|1] "" X: column 18: expected (factor,offset)',
    ),
    "identifier": (
        HEAD + "BO_ 4096 E: 8 ECU\n",
        "line 5: BO_ 4096 E: 8 ECU: its identifier is extended, and not marked so",
    ),
    "twice": (HEAD + "BO_ 256 E: 8 ECU\n\nBO_ 256 F: 8 ECU\n", "F has the identifier of E"),
    "outside": (
        HEAD + 'BO_ 256 E: 1 ECU\n SG_ A : 0|16@1+ (1,0) [0|1] "" X\n',
        "lies outside of the 1 bytes",
    ),
    "overlap": (
        HEAD + 'BO_ 256 E: 8 ECU\n SG_ A : 0|16@1+ (1,0) [0|1] "" X\n SG_ B : 8|16@1+ (1,0) [0|1] "" X\n',
        "A and B overlap",
    ),
    "noise": ("\x00\x01 no database \xff", "it is no text"),
    "empty": ("", "it is empty"),
    "missing": (None, "cannot be read: No such file"),
}


@pytest.mark.parametrize("name", DATABASES)
def test_each_fault_of_a_database_is_one_line_and_the_topology_is_not_called_ok(
    name: str, tmp_path: Path, capsys: Out
) -> None:
    pytest.importorskip("cantools")
    text, words = DATABASES[name]
    if text is not None:
        (tmp_path / "e.dbc").write_text(text)
    side = "{can: {channel: can0, bitrate: 500000}, protocol: {dbc: {file: e.dbc, root: e}}}"
    file = tmp_path / "t.yaml"
    head = "name: t\ngateways: {gw: {}}\nbuses: {p: {on: gw}}\n"
    file.write_text(f"{head}bridges: {{b: {{on: gw, join: [bus: p, {side}]}}}}\n")
    main(["check", str(file)])
    lines = [line for line in capsys.readouterr().out.splitlines() if ": note: " not in line]
    assert len(lines) == 1, lines
    assert words in lines[0]
