"""`buscoupler demo`: a directory that it made for captures, and that has none, is removed; at a terminal it
stays with a page.
"""

import json
import os
import re
import select
import socket
import sys
import urllib.request
from asyncio.subprocess import PIPE, create_subprocess_exec
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.demo import play
from appliance.demo.scene import free_ports
from tests.helpers import ROOT
from tests.helpers.programs import COMMAND
from tests.helpers.terminal import Terminal


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_ports_that_are_found_together_are_different(kind: socket.SocketKind) -> None:
    assert len(set(free_ports(400, kind))) == 400


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(
    ("files", "error", "is_kept"),
    [
        ([], None, False),
        (["plant.journal"], None, False),
        ([], OSError("x"), False),
        (["a/1.parquet"], None, True),
    ],
)
def test_only_a_directory_that_has_captures_is_left_behind(
    files: list[str],
    error: OSError | None,
    is_kept: bool,
    given: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = tmp_path / "captures"

    async def played(seconds: float, rate: float, capture: Path) -> int:
        assert capture == place
        for file in files:
            (capture / file).parent.mkdir(exist_ok=True)
            (capture / file).touch()
        if error is not None:
            raise error
        return 0

    def made() -> Path:
        place.mkdir()
        return place

    monkeypatch.setattr(play, "play", played)
    monkeypatch.setattr(play, "new_capture", made)
    if given:
        place.mkdir()
    main(["demo", *(["--capture", str(place)] if given else [])])
    assert place.exists() == (is_kept or given)


SHORT = (
    "from appliance.demo import play; from appliance.commandline.cli import main; play.SECONDS = 0.2; main()"
)


@pytest.mark.timeout(120)
def test_at_a_terminal_it_ends_with_the_address_of_a_page_and_runs_on(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, os.environ | {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path)})
    try:
        terminal.type(f"{sys.executable} -c '{SHORT}' demo --no-capture; echo status $?")
        while "Ctrl-C ends the demo." not in terminal.seen:
            terminal.read()
            assert not terminal.is_idle, terminal.seen
        address = re.findall(r"^  (http://\S+)$", terminal.seen, re.MULTILINE)
        assert (
            len(re.findall(r" device --dial tcp://127\S+ --dial tcp://127\S+$", terminal.seen, re.MULTILINE))
            == 1
        )
        with urllib.request.urlopen(f"{address[0]}/status.json", timeout=20) as answer:
            status = json.load(answer)
        assert {part["id"] for part in status["parts"]} >= {"bus plant", "bus office", "bridge coupler@here"}
        terminal.type("^C")
        terminal.wait("status 0")
    finally:
        terminal.end()
        terminal.close()


async def test_what_it_starts_ends_with_it_also_if_it_is_killed() -> None:
    demo = await create_subprocess_exec(*COMMAND, "demo", "--seconds", "60", "--no-capture", stdout=PIPE)
    children = Path(f"/proc/{demo.pid}/task/{demo.pid}/children")
    assert demo.stdout is not None
    while b"is a process" not in await demo.stdout.readline():  # its gateways listen
        pass
    started = [os.pidfd_open(int(child)) for child in children.read_text().split()]
    demo.kill()
    try:
        assert len(started) >= 3
        assert all(select.select([child], [], [], 30.0)[0] for child in started)
    finally:
        list(map(os.close, started))
        await demo.communicate()
