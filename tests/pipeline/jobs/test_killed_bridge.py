"""A real capture with a killed bridge: the audit finds exactly the frames that did not cross."""

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bus.wire.pattern import Pattern
from tests.helpers.ports import free_port
from tests.pipeline.engines import QUICK
from tests.pipeline.processes import COMMAND, audited, stop

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SENT, KILL_AFTER = 600, 100
MOTOR = Pattern("motor", "speed")
TRAFFIC = ["--rate", "300", "--count", str(SENT), "--json", "--pattern"]
TEXT = """
name: killed
gateways: {{gw: {{address: 127.0.0.1}}}}
buses:
  plant: {{on: gw, listen: "tcp://127.0.0.1:{plant}"}}
  office: {{on: gw, listen: "tcp://127.0.0.1:{office}"}}
bridges:
  coupler: {{on: gw, join: [{{bus: plant}}, {{bus: office}}]}}
devices:
  buses: {{on: gw, tap: [plant, office], directory: "{directory}/capture"}}
  carrier: {{on: gw, tap: coupler, directory: "{directory}/capture"}}
"""


THREE = """
name: three
gateways: {{gw: {{address: 127.0.0.1}}}}
buses:
  hall: {{on: gw, listen: "tcp://127.0.0.1:{hall}"}}
  one: {{on: gw, listen: "tcp://127.0.0.1:{one}"}}
  two: {{on: gw, listen: "tcp://127.0.0.1:{two}"}}
  three: {{on: gw, listen: "tcp://127.0.0.1:{three}"}}
bridges:
  door-one: {{on: gw, join: [{{bus: hall}}, {{bus: one}}]}}
  door-two: {{on: gw, join: [{{bus: hall}}, {{bus: two}}]}}
  door-three: {{on: gw, join: [{{bus: hall}}, {{bus: three}}]}}
devices:
  buses: {{on: gw, tap: [hall, one, two, three], directory: "{directory}/capture"}}
  tap-one: {{on: gw, tap: door-one, directory: "{directory}/capture"}}
  tap-two: {{on: gw, tap: door-two, directory: "{directory}/capture"}}
  tap-three: {{on: gw, tap: door-three, directory: "{directory}/capture"}}
"""

BESIDE = """
name: beside
gateways: {{gw: {{address: 127.0.0.1}}}}
buses:
  plant: {{on: gw, listen: "tcp://127.0.0.1:{plant}"}}
  office: {{on: gw, listen: "tcp://127.0.0.1:{office}"}}
bridges:
  of-one: {{on: gw, pattern: motor/one, join: [{{bus: plant}}, {{bus: office}}]}}
  of-two: {{on: gw, pattern: motor/two, join: [{{bus: plant}}, {{bus: office}}]}}
  of-three: {{on: gw, join: [{{bus: plant}}, {{bus: office, deny: [motor/one, motor/two]}}]}}
devices:
  buses: {{on: gw, tap: [plant, office], directory: "{directory}/capture"}}
  tap-one: {{on: gw, tap: of-one, directory: "{directory}/capture"}}
  tap-two: {{on: gw, tap: of-two, directory: "{directory}/capture"}}
  tap-three: {{on: gw, tap: of-three, directory: "{directory}/capture"}}
"""


class Plant:
    """A gateway in several processes, so that only a bridge can be killed, and listeners on its buses."""

    def __init__(self, directory: Path, stack: ExitStack, text: str = TEXT) -> None:
        self.ports = {name: free_port() for name in ("plant", "office", "hall", "one", "two", "three")}
        self.directory, self._stack = directory, stack
        self.file = directory / "killed.yaml"
        self.file.write_text(text.format(directory=directory, **self.ports))

    def start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, text=True)
        self._stack.callback(stop, process)
        return process

    def gateway(self, *parts: str) -> subprocess.Popen[str]:
        only = [word for part in parts for word in ("--only", part)]
        process = self.start("run", str(self.file), *only, "--run-directory", str(self.directory / "run"))
        assert process.stdout
        assert "runs" in process.stdout.readline()
        return process

    def url(self, bus: str) -> str:
        return f"tcp://127.0.0.1:{self.ports[bus]}"


def meet(plant: Plant, lines: Iterator[str], bus: str = "plant", pattern: str = "ready") -> None:
    """Send until the first frame has crossed: then both are connected."""
    ready = ["--rate", "20", "--count", "100", "--pattern", pattern]
    speaker = plant.start("traffic", plant.url(bus), *ready)
    next(lines)
    stop(speaker)


def numbered(lines: Iterable[str]) -> int:
    """Return how many of the lines are numbered frames."""
    return sum(json.loads(line)["tokens"] == list(MOTOR) for line in lines)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Return the capture's directory, and how many numbered frames crossed before the bridge was killed."""
    with ExitStack() as stack:
        plant = Plant(tmp_path_factory.mktemp("killed"), stack)
        recorder = plant.gateway("plant", "office", "buses")
        bridge = plant.gateway("coupler", "carrier")
        listener = plant.start("recv", plant.url("office"), "--json")
        assert listener.stdout
        lines = iter(listener.stdout)
        meet(plant, lines)
        traffic = plant.start("traffic", plant.url("plant"), *TRAFFIC, "motor/speed")
        heard = 0
        while heard < KILL_AFTER:
            heard += numbered([next(lines)])
        os.kill(bridge.pid, signal.SIGKILL)
        out, _ = traffic.communicate(timeout=60)
        assert json.loads(out.splitlines()[-1])["sent"] == SENT
        listener.send_signal(signal.SIGINT)
        heard += numbered(lines)
        stop(recorder)
    return plant.directory / "capture", heard


def test_the_audit_finds_what_a_killed_bridge_did_not_carry(capture: tuple[Path, int]) -> None:
    directory, heard = capture
    found = audited(directory, *QUICK)
    assert 0 < heard < SENT
    assert found["status"] == 1
    [fault] = found["summary"]
    assert (fault["kind"], fault["stage"], fault["segment"]) == ("lost", "no bridge", "bus office")
    assert (fault["gateway"], fault["hub"]) == ("gw", "bridge coupler")
    assert fault["count"] == SENT - heard
    assert all(row["missed"] == row["holes"] == 0 for row in found["capture"])


ROOMS = ("one", "two", "three")


class Star(NamedTuple):
    """How three bridges, one for each room, are tried: `door` begins their names, `parts` are the buses, of
    which `ear` is listened to, and `says` are the bus and the pattern of each room's frames."""

    text: str
    door: str
    parts: tuple[str, ...]
    ear: str
    says: dict[str, tuple[str, str]]
    lost_least: int


def kill(dead: str, star: Star, directory: Path) -> None:
    """Kill one of the bridges while all have frames to carry, and check what the audit says."""
    with ExitStack() as stack:
        plant = Plant(directory, stack, star.text)
        recorder = plant.gateway(*star.parts, "buses")
        bridges = {room: plant.gateway(f"{star.door}-{room}", f"tap-{room}") for room in ROOMS}
        listener = plant.start("recv", plant.url(star.ear), "--json")
        assert listener.stdout
        lines = iter(listener.stdout)
        for bus, pattern in star.says.values():
            meet(plant, lines, bus, pattern)
        speakers = [
            plant.start("traffic", plant.url(bus), *TRAFFIC, name) for bus, name in star.says.values()
        ]
        patterns = {tuple(Pattern(*name.split("/"))) for _, name in star.says.values()}
        heard = 0
        while heard < 3 * KILL_AFTER:
            heard += tuple(json.loads(next(lines))["tokens"]) in patterns
        os.kill(bridges[dead].pid, signal.SIGKILL)
        for speaker in speakers:
            speaker.communicate(timeout=60)
        listener.send_signal(signal.SIGINT)
        for _ in lines:
            pass
        for room in ROOMS:
            stop(bridges[room])
        stop(recorder)
    check(
        audited(directory / "capture", *QUICK)["summary"],
        f"bridge {star.door}-{dead}",
        star.lost_least,
    )


def check(rows: list[dict[str, Any]], bridge: str, lost_least: int) -> None:
    """Nearly all losses have to name the bridge, and none may name another."""
    lost = [row for row in rows if row["kind"] == "lost"]
    named = sum(row["count"] for row in lost if row["hub"] == bridge)
    assert sum(row["count"] for row in lost) > lost_least
    assert named >= 0.99 * sum(row["count"] for row in lost)
    assert {row["hub"] for row in rows} <= {bridge, None}


def test_of_three_bridges_the_killed_one_is_named(tmp_path: Path) -> None:
    """Each room has a bridge to the hall. Frames of each room go to all others, until a bridge is killed."""
    says = {room: (room, "motor/speed") for room in ROOMS}
    kill(ROOMS[0], Star(THREE, "door", ("hall", *ROOMS), "hall", says, SENT), tmp_path)


def test_of_three_bridges_side_by_side_the_killed_one_is_named(tmp_path: Path) -> None:
    """Three bridges join the same two buses, each for frames of another pattern."""
    says = {room: ("plant", f"motor/{room}") for room in ROOMS}
    kill(ROOMS[-1], Star(BESIDE, "of", ("plant", "office"), "office", says, SENT // 2), tmp_path)
