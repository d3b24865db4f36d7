"""Every command with every sort of bad luck: no stack is ever shown, and the status tells what happened."""

import contextlib
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.commandline import cli
from pipeline import jobs
from tests.helpers import ROOT
from tests.helpers.peers import wait
from topologies.loading.loader import load

COMMANDS = [[name] for name in cli.commands()] + [["pipeline", name] for name in jobs.NAMES]
TWO = """\
name: sweep
gateways: {{gw: {{address: 127.0.0.1}}}}
buses: {{b: {{on: gw, listen: "ipc://{directory}/b.sock"}}}}
"""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
LIMIT_S = 30


@pytest.fixture
def place(tmp_path: Path, socket_path: Path) -> dict[str, str]:
    """What the words of commands stand for: a topology, a bus that nobody has, a place to write."""
    file = tmp_path / "sweep.yaml"
    file.write_text(TWO.format(directory=socket_path.parent))
    return {"file": str(file), "bus": f"ipc://{socket_path}", "directory": str(tmp_path)}


@contextlib.contextmanager
def running(words: list[str], **settings: object) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "buscoupler", *words]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    given = {"env": ENVIRONMENT, **pipes, **settings}
    with subprocess.Popen(command, text=True, cwd=ROOT, **given) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def finished(words: list[str], **settings: object) -> tuple[int, str]:
    with running(words, **settings) as process:
        _, errors = process.communicate(timeout=LIMIT_S)
        return process.returncode, errors


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_an_unknown_option_and_a_misspelt_one(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stop:
        cli.main([*words, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "--log FORM" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "unknown option --no-such-option" in refused([*words, "--no-such-option"], capsys)
    option = max((word.strip(",[]") for word in text.split() if word.startswith("--")), key=len)
    misspelt = option[:-2] + option[-1] + option[-2] + "x"
    assert f'unknown option {misspelt}; did you mean "{option}"?' in refused([*words, misspelt], capsys)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["rnu"], 'did you mean "run"?'),
        (["start"], 'did you mean "run"?'),
        (["status"], 'did you mean "top"?'),
        (["list"], 'did you mean "top"?'),
        (["ls"], 'did you mean "top"?'),
        (["pub"], 'did you mean "send"?'),
        (["sub"], 'did you mean "recv"?'),
        (["help"], "write buscoupler --help"),
        (["stop"], "a process ends by Ctrl-C or SIGTERM"),
        (["pipeline", "adit"], 'did you mean "audit"?'),
        (["show", "x.yaml", "--format", "txt"], 'did you mean "text"?'),
        (["check", "x.yaml", "--log", "jsn"], 'did you mean "json"?'),
        (["check", "--jsn"], 'did you mean "--json"?'),
    ],
    ids=str,
)
def test_a_misspelt_word_has_a_hint(words: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert hint in refused(words, capsys)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("top --follow", "--follow needs --json"),
        ("top --follow --json --once", "--once or --follow"),
        ("top --run-directory /tmp http://127.0.0.1:1", "--run-directory or URL"),
        ("top --tls-ca x http://127.0.0.1:1", "--tls-ca needs a URL that begins with https://"),
        ("show x.yaml --values --svg", "--values is a list"),
        ("show x.yaml --values --live", "--values is a list"),
        ("show x.yaml --live --format mermaid", "--format mermaid has no place for it"),
        ("alarms --json ack hot", "--json is of the list"),
        ("alarms --run-directory /tmp rules x.yaml", "they need no --run-directory"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    words: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert why in refused(words.split(), capsys)


@pytest.mark.parametrize(
    "words",
    [
        ["send", "tcp://127.0.0.1:1", "a", "--binary", "/dev/zero"],
        ["tokens", "--names", "/dev/zero"],
        ["tokens", "--names", "-"],
    ],
    ids=" ".join,
)
def test_no_file_without_end_fills_the_memory(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open("/dev/zero") as endless:
        monkeypatch.setattr(sys, "stdin", endless)
        assert " bytes" in refused(words, capsys)


@pytest.mark.parametrize("word", ["\udcff", "a/\udcff\udcfe", '"\udcff"'])
def test_a_name_is_text(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "not UTF-8 text" in refused(["tokens", word], capsys)


@pytest.mark.parametrize("words", [["capture", "--output", "x"], ["capture", "--quiet"]], ids=str)
def test_what_is_no_slip_has_no_hint(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean" not in refused(words, capsys)


@pytest.mark.parametrize(
    "words", [["-v", "check"], ["check", "-v"], ["--log", "json", "check", "-v"]], ids=str
)
def test_options_of_the_log_stand_anywhere(words: list[str], place: dict[str, str]) -> None:
    options = cli.parser("check").parse_args([*words, place["file"]])
    assert options.verbose
    assert options.log == ("json" if "json" in words else None)


PRINTING = [
    ["--help"], ["check", "{file}"], ["show", "{file}"], ["tokens", "fridge"], ["run", "{file}"],
    ["device", "{bus}"], ["broker", "tcp://127.0.0.1:0"], ["recv", "--help"],
    ["syndicate", "tcp://127.0.0.1:0"], ["catalog", "--records", "none"],
]  # fmt: skip


@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_an_output_that_takes_nothing_is_one_line_and_status_1(
    words: list[str], place: dict[str, str]
) -> None:
    words = [word.format(**place) for word in words]
    with open("/dev/full", "w") as full:
        assert finished(words, stdout=full) == (1, "buscoupler: No space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert finished(words, stdout=writing) == (1, "buscoupler: nobody reads the output any more\n")
    finally:
        os.close(writing)


@pytest.mark.parametrize("words", [["check", "{file}"], ["tokens", "fridge"]], ids=" ".join)
def test_standard_streams_may_be_closed(words: list[str], place: dict[str, str]) -> None:
    words = [word.format(**place) for word in words]
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-m", "buscoupler", *words]
    assert subprocess.run(closed, cwd=ROOT, timeout=LIMIT_S, env=ENVIRONMENT, check=False).returncode == 0


UNWRITABLE = [
    ["run", "{file}", "--run-directory", "{closed}/x"],
    ["capture", "{bus}", "--directory", "{closed}/x"],
    ["capture", "{bus}", "--pcapng", "{closed}/x.pcapng"],
]


@pytest.mark.parametrize("words", UNWRITABLE, ids=" ".join)
def test_an_unwritable_path_is_one_line_and_status_1(words: list[str], place: dict[str, str]) -> None:
    closed = Path(place["directory"], "closed")
    closed.touch()  # no directory, whoever we are: root may write into any
    status, errors = finished([word.format(**place, closed=closed) for word in words])
    assert (status, errors.count("\n")) == (1, 1), errors
    assert str(closed) in errors


def test_for_programs_the_reason_of_the_end_is_a_line_of_the_log_too(place: dict[str, str]) -> None:
    words = ["run", "/no/such.yaml"]
    assert finished(words) == (
        1,
        "buscoupler: /no/such.yaml: error: cannot read: No such file or directory\n",
    )
    status, errors = finished([*words, "--log", "json"])
    assert (status, json.loads(errors)["level"]) == (1, "error")
    with Path(place["directory"], "journal").open("w") as file:
        stream = os.fstat(file.fileno())
        under_systemd = ENVIRONMENT | {"JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino}"}
        assert finished(words, stderr=file, env=under_systemd)[0] == 1
    assert Path(file.name).read_text().startswith("<3>buscoupler: /no/such.yaml: error")


STOPPED = [
    (["run", "{file}"], 0), (["device", "{bus}"], 0), (["broker", "tcp://127.0.0.1:0"], 0),
    (["syndicate", "tcp://127.0.0.1:0"], 0), (["catalog", "--records", "none"], 0),
    (["demo", "--no-capture"], 130), (["check", "-"], 130), (["tokens", "--names", "-"], 130),
    (["capture", "{bus}", "--directory", "{directory}/c", "--seconds", "60"], 130),
]  # fmt: skip


@pytest.mark.parametrize(("words", "status"), STOPPED, ids=str)
def test_ctrl_c_shows_no_stack_and_the_status_tells_if_it_had_finished(
    words: list[str], status: int, place: dict[str, str]
) -> None:
    words = [word.format(**place) for word in words]
    with running([*words, "-v", "--log", "json"]) as process:
        wait_for_its_work(process, words, Path(place["directory"], "c"))
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == status
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def wait_for_its_work(process: "subprocess.Popen[str]", words: list[str], capture: Path) -> None:
    """Wait until a command reads its input, has made its directory, or says that it runs."""
    assert process.stdin is not None
    assert process.stdout is not None
    if words[-1] == "-":
        process.stdin.write("#\n")
        process.stdin.flush()
        pipe = process.stdin.fileno()
        wait(lambda: not unread(pipe))
    elif words[0] == "capture":
        wait(capture.exists)
    else:
        assert process.stdout.readline()


def unread(pipe: int) -> int:
    """Return how many bytes of a pipe nobody has read yet."""
    found = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, found)
    return found[0]


def test_the_live_page_of_top_ends_well(place: dict[str, str]) -> None:
    where = ["--run-directory", place["directory"]]
    with running(["run", place["file"], *where]) as gateway:
        assert gateway.stdout is not None
        assert "sweep" in gateway.stdout.readline()
        terminal, slave = pty.openpty()
        with running(["top", "--seconds", "0.1", *where], stdout=slave) as top:
            os.close(slave)
            while b"\x1b[H" not in os.read(terminal, 65536):
                pass
            top.send_signal(signal.SIGINT)
            with contextlib.suppress(OSError):
                while os.read(terminal, 65536):
                    pass
            assert top.wait(LIMIT_S) == 0
        os.close(terminal)


ODD = [
    (["check", "{latin}"], 1), (["run", "{latin}"], 1), (["tokens", "--names", "{latin}.txt"], 2),
    (["check", "caf\udce9"], 1), (["caf\udce9"], 2),
    (["send", "{bus}", "a", "--data", "\udce9", "--timeout", "0.1"], 1),
    (["show", "\udce9"], 1), (["run", "\udce9", "--gateway", "\udce9"], 1), (["recv", "\udce9"], 2),
]  # fmt: skip


@pytest.mark.parametrize(("words", "status"), ODD, ids=lambda words: ascii(words))
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_odd_encodings_show_no_stack(
    words: list[str], status: int, locale: str, place: dict[str, str]
) -> None:
    latin = Path(place["directory"], "latin")
    for path in (latin, latin.with_suffix(".txt")):
        path.write_bytes("name: café\n".encode("latin-1"))
    named = [os.fsencode(word.format(**place, latin=latin)) for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "buscoupler", *named], cwd=ROOT, timeout=LIMIT_S, check=False,
        env=ENVIRONMENT | {"LC_ALL": locale}, capture_output=True,
    )  # fmt: skip
    assert done.returncode == status
    assert b"Traceback" not in done.stderr


def test_text_that_the_terminal_s_coding_lacks_is_escaped() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "buscoupler", "tokens", "Δ"], cwd=ROOT, timeout=LIMIT_S, check=False,
        env=ENVIRONMENT | {"PYTHONIOENCODING": "latin-1"}, capture_output=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\u0394" in done.stdout


def test_the_file_of_this_test_is_right(place: dict[str, str]) -> None:
    assert load(place["file"]).name == "sweep"
