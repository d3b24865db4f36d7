"""`buscoupler deploy` and `rollback` refuse what cannot go well, most of it before any gateway is asked."""

import io
import shutil
import sys
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.commands.deploy import agreed
from appliance.rollout.runner import Ssh
from appliance.rollout.steps import Answer, pack

PLANT = """
name: plant
gateways:
  gw-a: {address: 10.0.0.1}
  gw-b: {address: 10.0.0.2}
buses: {plant: {on: gw-a, listen: ["tcp://10.0.0.1:5555"]}}
"""


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A file that is there once a gateway was asked."""
    return tmp_path / "asked"


def told(words: list[str], asked: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line with which a command refuses, asking nobody."""
    ssh = f'{sys.executable} -c \'open("{asked}", "w")\''
    assert main([*words, "--ssh", ssh]) == 1
    assert not asked.exists()
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line


LONG = ("#" * 1023 + "\n").encode() * 1025


@pytest.mark.parametrize(
    ("data", "wrong"),
    [(LONG, "longer than"), ((PLANT + "# é" + "é" * 600_000).encode(), "more than 1048576 bytes"),
     (b"name: \xff\n", "not UTF-8"), (None, "irectory")],
)  # fmt: skip
def test_a_file_that_cannot_be_sent_is_named(
    tmp_path: Path, asked: Path, capsys: pytest.CaptureFixture[str], data: bytes | None, wrong: str
) -> None:
    file = tmp_path / "plant.yaml"
    file.mkdir() if data is None else file.write_bytes(data)
    line = told(["deploy", str(file)], asked, capsys)
    assert line.startswith(f"buscoupler deploy: {file}:")
    assert wrong in line


@pytest.mark.parametrize(
    ("times", "why"),
    [(["--settle", "1"], "--settle 1 is too short: a gateway tells of a dead link after 5 s"),
     (["--settle", "5", "--wait", "8"], "--wait 8 is too short to be well for 5 s: write 9")],
)  # fmt: skip
def test_times_in_which_no_gateway_can_be_judged_are_refused(
    tmp_path: Path, asked: Path, capsys: pytest.CaptureFixture[str], times: list[str], why: str
) -> None:
    file = tmp_path / "plant.yaml"
    file.write_text(PLANT)
    assert told(["deploy", str(file), *times], asked, capsys) == f"buscoupler deploy: {why}\n"


@pytest.mark.parametrize("command", ["deploy", "rollback"])
def test_gateways_that_share_a_file_are_refused(
    tmp_path: Path, asked: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    file = tmp_path / "plant.yaml"
    file.write_text(PLANT)
    line = told([command, str(file), "--gateway", "gw-a", "--gateway", "gw-b=root@10.0.0.1"], asked, capsys)
    share = "gw-a and gw-b share /etc/buscoupler/plant.yaml on 10.0.0.1"
    assert line == f"buscoupler {command}: {share}: give each a file of its own, with {{gateway}} in --to\n"


@pytest.mark.parametrize("command", ["deploy", "rollback"])
def test_a_gateway_has_one_host(
    tmp_path: Path, asked: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    file = tmp_path / "plant.yaml"
    file.write_text(PLANT)
    line = told([command, str(file), "--gateway", "gw-a=h", "--gateway", "gw-a=g"], asked, capsys)
    assert line == f"buscoupler {command}: --gateway gw-a is there twice: it has one host\n"


@pytest.mark.parametrize(
    ("a", "b", "file", "shared"),
    [("h", "h", "/etc/{gateway}/x", False), ("h", "H", "/x", True), ("a@h", "b@h", "/x", True),
     ("a@h", "b@h", "x", False), ("ssh://h/", "h", "/x", True), ("ssh://h:1", "ssh://h:2", "/x", False),
     ("::1", "0:0::1", "/x", True), ("h", "h", "/x/{gateway}/../y", True), ("h", "g", "/x", False)],
)  # fmt: skip
def test_a_file_is_shared_on_one_host_however_it_is_written(a: str, b: str, file: str, shared: bool) -> None:
    assert Ssh({"gw-a": a, "gw-b": b}, file, "asks-nobody").sharing() == (["gw-a", "gw-b"] if shared else [])


def test_what_a_gateway_refuses_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plant.yaml"
    file.write_text(PLANT)
    ssh = tmp_path / "ssh.py"
    ssh.write_text(f"print({pack(Answer('nowhere.pem is not there')).decode().strip()!r})")
    assert main(["deploy", str(file), "--to", "{gateway}", "--ssh", f"{sys.executable} {ssh}"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert sorted(lines) == [f"{name}: look: nowhere.pem is not there" for name in ("gw-a", "gw-b")]


NAMES = """\
Host one two
  HostName 10.0.0.1
  User root
Host behind
  HostName 10.0.0.1
  ProxyJump jump
"""


@pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is missing: apt-get install openssh-client")
@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [("one", "two", True), ("one", "me@10.0.0.1", True), ("one", "ssh://10.0.0.1:22", True),
     ("one", "ssh://10.0.0.1:23", False), ("one", "behind", False), ("one", "three", False)],
)  # fmt: skip
def test_names_of_the_configuration_of_ssh_are_resolved(tmp_path: Path, a: str, b: str, shared: bool) -> None:
    (tmp_path / "config").write_text(NAMES)
    way = Ssh({"gw-a": a, "gw-b": b}, "/x", f"ssh -F {tmp_path / 'config'}")
    assert way.sharing() == (["gw-a", "gw-b"] if shared else [])


def test_another_program_than_ssh_is_asked_nothing(tmp_path: Path) -> None:
    way = Ssh({"gw-a": "one", "gw-b": "two"}, "/x", f"touch {tmp_path / 'asked'}")
    assert way.sharing() == []
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(("typed", "agrees"), [("y\n", True), ("YES\n", True), ("\n", False), ("", False)])
def test_nothing_but_a_yes_agrees_and_the_end_of_input_is_none(
    typed: str, agrees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert agreed(2) is agrees
