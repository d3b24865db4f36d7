"""`run --test`: real traffic for a while, and the verdict on it."""

import asyncio
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.status.client import ask, status_socket
from appliance.status.trial import crossed, table
from bus.hub import Hub
from bus.transports.links import make_link
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.bridges.support import RecordingPipe, say
from tests.helpers.peers import Ear, until, wait
from tests.helpers.ports import free_port
from tests.helpers.programs import TWO_BUSES, process

FRAME = pack(PUB, Pattern("a", "b"), b"1")


def file_in(directory: Path) -> tuple[Path, list[int]]:
    ports = [free_port(), free_port()]
    file = directory / "two.yaml"
    file.write_text(TWO_BUSES.format(*ports))
    return file, ports


def peers_of(directory: Path) -> int:
    """The peers that listeners of a gateway have."""
    status = ask(directory / status_socket(()), 30.0)
    links = [link for hub in status["hubs"] for link in hub["links"]]
    return sum(link["live"] for link in links if link["name"].startswith("tcp://"))


async def test_what_crossed_is_shown_and_the_status_is_0(tmp_path: Path) -> None:
    file, ports = file_in(tmp_path)
    words = "run", str(file), "--test", "--seconds", "30", "--run-directory", str(tmp_path / "r")
    async with process(*words) as program:
        hubs = [Hub(), Hub()]
        links = [make_link(f"tcp://127.0.0.1:{port}", "dial") for port in ports]
        ears = [Ear(hub) for hub in hubs]
        for link, hub in zip(links, hubs, strict=True):
            link.open(hub, asyncio.get_running_loop())
        await until(lambda: all(len(hub.pipes) == 2 for hub in hubs))
        await until((tmp_path / "r" / status_socket(())).exists)  # it may come after the listeners
        # Our end of a link is up before theirs.
        await asyncio.to_thread(wait, lambda: peers_of(tmp_path / "r") >= 2)
        ears[0].say(FRAME, FRAME)
        await until(lambda: len(ears[1].heard) == 2)
        program.terminate()  # early, with the same verdict
        shown, _ = await program.communicate()
        for link in links:
            link.close()
    assert program.returncode == 0
    lines = [" ".join(line.split()) for line in shown.decode().splitlines()]
    assert f"listen tcp://127.0.0.1:{ports[0]} 2 0 0 0 0" in lines
    assert f"listen tcp://127.0.0.1:{ports[1]} 0 2 0 0 0" in lines
    assert lines[-1] == "6 messages crossed; every message is accounted for"


def test_a_test_in_which_nothing_crosses_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, _ = file_in(tmp_path)
    assert main(["run", str(file), "--test", "--seconds", "0.2", "--run-directory", str(tmp_path / "r")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "no messages crossed; every message is accounted for"


def test_seconds_without_a_test_are_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", str(file_in(tmp_path)[0]), "--seconds", "5"])
    assert stop.value.code == 2


def test_what_came_in_but_left_by_no_other_link_has_not_crossed() -> None:
    hub = Hub("plant")
    one = RecordingPipe("one", "one")
    hub.attach(one)
    say(hub, one, FRAME)
    assert crossed([hub]) == 0
    hub.publish(from_payloads([FRAME]))  # what the gateway says itself, to the only link
    assert crossed([hub]) == 0
    other = RecordingPipe("other", "other")
    hub.attach(other)
    say(hub, one, FRAME)
    assert crossed([hub]) == 1
    assert [line.split()[:3] for line in table([hub])][2:] == [["one", "2", "1"], ["other", "0", "1"]]


def test_a_link_that_is_not_up_is_named_with_its_bridge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, port = tmp_path / "twins.yaml", free_port()
    tcp = f"{{tcp: {{host: 127.0.0.1, port: {port}}}}}"
    file.write_text(
        "name: twins\ngateways: {gw: {address: 127.0.0.1, status: {serve: false}}}\n"
        "buses: {a: {on: gw}, b: {on: gw}}\n"
        f"bridges: {{x: {{on: gw, join: [bus: a, {tcp}]}}, y: {{on: gw, join: [bus: b, {tcp}]}}}}\n"
    )
    main(["run", str(file), "--test", "--seconds", "0.2", "--run-directory", str(tmp_path / "r")])
    lines = [
        line.partition(": waiting")[0] for line in capsys.readouterr().out.splitlines() if "not up" in line
    ]
    assert lines == [f"not up: {bridge}/tcp:127.0.0.1:{port}" for bridge in "xy"]
