"""The demo in words reads well in a pipe and on terminals of 80 and 50 columns."""

import re
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from appliance.demo import picture
from appliance.demo.members import Foreign, Member
from bus.wire.pattern import token
from pipeline.engine import jars, sail

NAMES = {"serial": "uart", "can": "can", "app-plant": "plant", "app-office": "office"}
CAPTURE = Path("/tmp/buscoupler-demo-abcdefgh")
ACCOUNT = "    ipc:///tmp/bc-x9bp_ct_/office.sock: in 52, out 156, dropped 0; 1 live"
LEDGER = f"ledger of 2 links: balanced\n{ACCOUNT}"


def members(count: int = 400) -> list[Member]:
    made = [Member(name, segment, iter(())) for name, segment in NAMES.items()]
    made += [Foreign(name, "plant", "tcp://127.0.0.1:1") for name in ("nanocat", "nngcat")]
    for sender in made[:4]:
        sender.sent, sender.last = count, "memory 2.8 %"
        for receiver in made:
            receiver.received[token(sender.name)] = count * (receiver is not sender)
    return made


def shown(width: int, terminal: bool, count: int = 400) -> str:
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, no_color=True, legacy_windows=False)
    scene = SimpleNamespace(
        members=members(count), plant="tcp://127.0.0.1:48755", office="tcp://127.0.0.1:59493", foreign=[],
        line=SimpleNamespace(a=Path("/tmp/bc-x9bp_ct_/line-a")), log=Path("/dev/null"),
        can={"interface": "udp_multicast", "channel": "239.74.163.2", "options": {"port": 45872}},
    )  # fmt: skip
    picture.introduce(scene, console)  # type: ignore[arg-type]
    console.print(picture.counts(scene.members, console))
    picture.ledgers({"office": LEDGER}, console)
    picture.verdict(scene, [], console)  # type: ignore[arg-type]
    picture.next_step(CAPTURE, console)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue())


@pytest.mark.parametrize("width", [80, 50])
def test_on_a_terminal_every_line_fits_but_the_command_to_copy(width: int) -> None:
    lines = shown(width, terminal=True).splitlines()
    assert [line for line in lines if len(line) > width and " audit " not in line and "pip" not in line] == []


@pytest.mark.parametrize(("width", "terminal"), [(80, False), (80, True), (50, False), (50, True)])
def test_paths_are_whole_and_nothing_is_cut_or_stuck_together(width: int, terminal: bool) -> None:
    text = shown(width, terminal)
    for word in ("tcp://127.0.0.1:59493", "/tmp/bc-x9bp_ct_/line-a", str(CAPTURE)):
        assert word in text
    assert "…" not in text
    assert "{" not in text
    assert "\noffice: ledger of 2 links: balanced\n" in text
    assert re.search(rf"^  \S.* audit {CAPTURE}(?: --engine sail)?$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("count", "width", "whole"), [(400, 80, True), (400, 50, False), (123456, 80, False)]
)
def test_the_table_is_whole_where_it_fits(count: int, width: int, whole: bool) -> None:
    text = shown(width, False, count)
    assert ("sender (rows)" in text) == whole
    assert str(count) in text


def test_in_a_pipe_an_account_stays_one_line() -> None:
    assert ACCOUNT in shown(50, terminal=False).splitlines()


def test_each_count_is_explained() -> None:
    text = " ".join(shown(80, terminal=False).split())
    assert "1600 frames sent, 8000 received" in text
    for words in ("receive every frame of every other member once", "in messages", "also count greetings"):
        assert words in text


def test_what_is_not_installed_is_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for engine in (sail, jars):
        monkeypatch.setattr(engine, "installed", lambda: False)
    *_, install, audit = shown(80, terminal=False).splitlines()
    assert "install 'buscoupler[sail]'" in install
    assert audit.endswith(f"buscoupler audit {CAPTURE} --engine sail")


def test_with_sail_alone_the_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "installed", lambda: False)
    monkeypatch.setattr(sail, "installed", lambda: True)
    assert shown(80, terminal=False).splitlines()[-1].endswith(f"buscoupler audit {CAPTURE} --engine sail")
