"""The program as a user runs it: real processes, wrong inputs, Ctrl-C, and a file that changes."""

import asyncio
import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.local.places import runtime_directory
from appliance.probe.words import frame_in
from appliance.status.client import ask
from bus.names import Names
from bus.tmq.client.client import Client
from capture.names import given
from capture.reader import read
from capture.schema import Kind
from pipeline.engine.choice import SAIL, VARIABLE
from tests.helpers import alone
from tests.helpers.peers import SpPeer, until
from tests.helpers.ports import free_port
from tests.helpers.programs import FRAME, TWO_BUSES, ear_on, finished, hears, process


def test_a_ledger_that_does_not_balance_is_a_problem_found(
    two: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve(_: object, __: object, farewell: Callable[[], Callable[[], int]], real_time: bool) -> int:
        return farewell()()

    monkeypatch.setattr("appliance.commands.run.serve", serve)
    assert main(["run", str(two[0])]) == 0
    monkeypatch.setattr("appliance.status.ledger.imbalances", lambda _: ["joint | far: 1 of 1 offered"])
    assert main(["run", str(two[0])]) == 1
    assert "balanced" in capsys.readouterr().out


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, list[str]]:
    ports = [free_port(), free_port()]
    file = tmp_path / "two.yaml"
    file.write_text(TWO_BUSES.format(*ports))
    return file, [f"tcp://127.0.0.1:{port}" for port in ports]


async def test_ctrl_c_stops_cleanly_with_a_balanced_ledger(two: tuple[Path, list[str]]) -> None:
    file, urls = two
    async with process("run", str(file)) as program, ear_on(urls[0]) as one, ear_on(urls[1]) as other:
        await hears(one, other)
        await hears(other, one)
        program.send_signal(signal.SIGINT)
        output, errors = await program.communicate()
        assert program.returncode == 0
        assert b"ledger of 6 links: balanced" in output
        rows = [line.decode().split(": in ")[0] for line in output.splitlines() if b": in " in line]
        assert sorted(rows) == sorted(
            [*(f"    listen {url}" for url in urls), *["    bridge joint"] * 2, "    bus one", "    bus two"]
        )
        assert errors == b""


def converse(url: str, count: int) -> None:
    """Send `count` frames from one peer to another; both leave when all are there."""
    hears, speaks = SpPeer(url), SpPeer(url)
    for peer in (hears, speaks):
        peer.greeting()
    speaks.send(*[FRAME] * count)
    assert [hears.receive() for _ in range(count)] == [FRAME] * count
    for peer in (hears, speaks):
        peer.close()


async def test_a_device_says_what_passed_although_all_peers_have_left() -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    async with process("device", url) as program:
        await asyncio.to_thread(converse, url, 6400)
        (path,) = runtime_directory().glob(f"device/{program.pid}/status.sock")
        await until(lambda: ask(path)["hubs"][0]["pipes"] == [])
        (link,) = ask(path)["hubs"][0]["links"]
        program.send_signal(signal.SIGINT)
        output, _ = await program.communicate()
    assert (link["received"], link["sent"], link["live"], link["gone"]) == (6400, 6400, 0, 2)
    lines = output.decode().splitlines()
    assert lines == ["ledger of 1 link: balanced", "  device", f"    {url}: in 6400, out 6400, dropped 0"]
    assert program.returncode == 0


async def test_a_device_says_where_it_listens_and_what_it_dials() -> None:
    listens, dials = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    async with process("device", listens, "--dial", dials) as program:
        program.send_signal(signal.SIGINT)
        output, _ = await program.communicate()
    assert output.decode().splitlines()[0] == f"bus dials {dials}"  # the line before it says that it runs


async def test_a_broker_says_its_counts_at_its_end() -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    async with process("broker", url) as program:
        async with Client([url.removeprefix("tcp://")]) as client:
            assert await client.subscribe(("a", "b"))
        program.send_signal(signal.SIGTERM)
        output, _ = await program.communicate()
    assert re.search(r"ledger of 1 link: balanced\n.*\n    clients: in [1-9]", output.decode())
    assert program.returncode == 0


async def test_parts_in_processes_of_their_own_meet(two: tuple[Path, list[str]], tmp_path: Path) -> None:
    file, urls = two
    words = ("run", str(file), "--run-directory", str(tmp_path), "--only")
    async with process(*words, "one"), process(*words, "two"), process(*words, "joint"):
        async with ear_on(urls[0]) as one, ear_on(urls[1]) as other:
            await hears(one, other)


async def test_sighup_changes_only_what_differs(two: tuple[Path, list[str]]) -> None:
    file, urls = two
    new_url = f"tcp://127.0.0.1:{free_port()}"
    async with process("run", str(file)) as program, ear_on(urls[0]) as stays:
        file.write_text(file.read_text().replace(urls[1], new_url))
        program.send_signal(signal.SIGHUP)
        async with ear_on(new_url) as moved:
            await hears(moved, stays)
            await hears(stays, moved)
        assert len(stays.hub.pipes) == 2  # its connection was never closed
        file.write_text("name: [")
        program.send_signal(signal.SIGHUP)
        assert program.stderr is not None
        while b"goes on as before" not in await program.stderr.readline():
            pass
        program.send_signal(signal.SIGTERM)
        await program.communicate()
        assert program.returncode == 0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["run", "/nowhere.yaml"], 1, "/nowhere.yaml"),
        (["device"], 2, "at least one URL"),
        (["device", "udp://x:1"], 1, "an address must start with"),
        (["device", "tcp://127.0.0.1:99999"], 1, "99999"),
        (["nonsense"], 2, "nonsense"),
        ([], 2, "COMMAND"),
    ],
)
def test_wrong_use_gets_one_clear_line(words: list[str], status: int, said: str) -> None:
    result = finished(*words)
    assert result.returncode == status
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_run_refuses_what_check_refuses(two: tuple[Path, list[str]]) -> None:
    file, _ = two
    file.write_text(file.read_text().replace("gateways", "gatways"))
    run, check = finished("run", str(file)), finished("check", str(file), "--json")
    assert run.returncode == check.returncode == 1
    assert 'did you mean "gateways"?' in run.stderr
    assert 2 in [finding["line"] for finding in json.loads(check.stdout)]


def test_a_part_that_is_not_there(two: tuple[Path, list[str]]) -> None:
    file, _ = two
    assert "runs no three" in finished("run", str(file), "--only", "three").stderr
    assert "no gateway" in finished("run", str(file), "--gateway", "x").stderr


def test_show_draws_both_ways(two: tuple[Path, list[str]]) -> None:
    assert "bridge joint" in finished("show", str(two[0])).stdout
    assert finished("show", str(two[0]), "--format", "mermaid").stdout.startswith("flowchart")


def test_the_demo_balances_and_its_capture_has_the_name_of_every_token(tmp_path: Path) -> None:
    result = finished("demo", "--seconds", "1", "--capture", str(tmp_path))
    assert result.returncode == 0, result.stdout
    assert "The ledgers balance" in result.stdout
    names = Names(given(str(tmp_path)))
    frames = (frame_in(packet.message) for packet in read(tmp_path) if packet.kind == Kind.FRAME)
    patterns = {names.show(frame.tokens) for frame in frames if frame}
    assert {"demo/can/load", "demo/serial/memory", "demo/app-office/network"} <= patterns
    assert not [pattern for pattern in patterns if "0x" in pattern]


@pytest.mark.timeout(120)
def test_the_last_line_of_the_demo_works_as_it_is_printed(tmp_path: Path) -> None:
    pytest.importorskip("pysail")
    *_, last = finished("demo", "--seconds", "1", "--capture", str(tmp_path)).stdout.splitlines()
    assert last.endswith(f" audit {tmp_path}")
    done = subprocess.run(last, shell=True, capture_output=True, text=True, env=alone() | {VARIABLE: SAIL})
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.startswith("Green: ")


async def test_a_device_takes_all_the_descriptors_it_may_have() -> None:
    async with process("device", "tcp://127.0.0.1:0") as program:
        limits = Path(f"/proc/{program.pid}/limits").read_text()
        soft, hard = next(line for line in limits.splitlines() if "open files" in line).split()[3:5]
        assert soft == hard
