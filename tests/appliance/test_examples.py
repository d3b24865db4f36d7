"""Each example topology runs as written, except for ports and paths, and joins all that it names."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest

from appliance.demo.nullmodem import NullModem
from bus.urls import split_url
from bus.wire.pattern import Pattern
from tests.appliance.examples import EXAMPLES, RUNNABLE, frame, outside, relocated, rendezvous, running
from tests.helpers import ROOT
from tests.helpers.peers import Ear, until
from tests.helpers.tmq import ReferenceClient, processed
from topologies.checks.checker import check
from topologies.loading.loader import load, loads

OWN_TEST = ("browser", "fridge", "slow-line")  # these filter or shed frames


@pytest.mark.parametrize("path", [p for p in RUNNABLE if p.stem not in OWN_TEST], ids=lambda path: path.stem)
async def test_every_door_hears_all_others_once(path: Path, tmp_path: Path) -> None:
    topology = loads(relocated(path.read_text(), tmp_path), path.name)
    async with running(topology, tmp_path) as ears:
        assert len(ears) >= 2
        await rendezvous(ears, "motor", "speed")
        for name, ear in ears.items():
            for number in range(20):
                ear.say(frame(f"{name} {number}", "motor", "speed"))
        for name, ear in ears.items():
            ear.say(frame(f"end {name}", "motor", "speed"))
        ends = {name: frame(f"end {name}", "motor", "speed") for name in ears}
        await until(lambda: all(e in o.heard for n, e in ends.items() for m, o in ears.items() if m != n))
        for receiver, ear in ears.items():
            for sender in ears:
                for number in range(20):
                    count = ear.heard.count(frame(f"{sender} {number}", "motor", "speed"))
                    assert count == (sender != receiver), (sender, receiver, number)


async def test_the_browser_s_gate_lets_through_what_it_says(tmp_path: Path) -> None:
    path = next(p for p in RUNNABLE if p.stem == "browser")
    topology = loads(relocated(path.read_text(), tmp_path), path.name)
    async with running(topology, tmp_path) as ears:
        house, web, garden = ears["house 0"], ears["house 1"], ears["garden 0"]
        await until(lambda: _say(house, "fridge", "temp") and garden.heard and web.heard)
        house.say(frame("secret", "oven", "log"), frame("open", "oven", "temp"))
        await until(lambda: frame("open", "oven", "temp") in garden.heard)
        assert frame("secret", "oven", "log") not in garden.heard
        garden.say(frame("forged", "fridge", "temp"), frame("fine", "gate"))
        await until(lambda: frame("fine", "gate") in house.heard and frame("fine", "gate") in web.heard)
        assert frame("forged", "fridge", "temp") not in house.heard


async def test_the_slow_line_gets_the_latest_of_each_pattern(tmp_path: Path) -> None:
    path = next(p for p in RUNNABLE if p.stem == "slow-line")
    topology = loads(relocated(path.read_text(), tmp_path), path.name)
    async with running(topology, tmp_path) as ears:
        hall, line, recorder = ears["hall 0"], ears["uart"], ears["tcp"]
        await rendezvous(ears, "motor", "speed")
        readings = [frame(f"{number:05}", "motor", str(number % 5)) for number in range(5000)]
        for start in range(0, len(readings), 100):
            hall.say(*readings[start : start + 100])
        await until(lambda: all({*readings[-5:]} <= {*ear.heard} for ear in (line, recorder)))
        numbers = {reading: number for number, reading in enumerate(readings)}
        for pattern in range(5):
            of_it = [n for f in line.heard if (n := numbers.get(f, -1)) % 5 == pattern and n >= 0]
            assert of_it[-1] == 4995 + pattern
            assert of_it == sorted(set(of_it))
        assert [f for f in recorder.heard if f in numbers] == readings
        assert len(line.heard) < len(recorder.heard)


TEMP, ALERT = Pattern("fridge", "temp"), Pattern("fridge", "alert")


@asynccontextmanager
async def program(file: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a topology by the command `run`, and yield when it says that it runs."""
    words = ["-m", "buscoupler", "run", str(file), "--run-directory", str(file.parent / "run")]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        assert process.stdout is not None
        while b"uart:" not in (line := await process.stdout.readline()):
            assert line, "it ended"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_what_a_fridge_publishes_is_on_can_and_the_line_and_alerts_come_back(tmp_path: Path) -> None:
    file = tmp_path / "fridge.yaml"
    file.write_text(relocated((ROOT / "topologies" / "fridge.yaml").read_text(), tmp_path))
    topology = load(file)
    broker = split_url(topology.brokers["main"].listen[0].url)
    async with AsyncExitStack() as stack:
        modem = NullModem(tmp_path, asyncio.get_running_loop())
        stack.callback(modem.close)
        process = await stack.enter_async_context(program(file))
        ears = await outside(topology, modem.b, stack)
        await rendezvous(ears, "motor")
        fridge, panel = (
            stack.enter_context(closing(ReferenceClient((broker.host, broker.port)))) for _ in range(2)
        )
        fridge.publish(*TEMP)
        panel.subscribe(*ALERT)
        await processed(lambda: fridge.subscribers[TEMP], fridge)
        readings = [frame(f"{number / 10}", *TEMP) for number in range(40)]
        for number in range(40):
            await asyncio.to_thread(fridge.send, TEMP, f"{number / 10}".encode())
        for ear in ears.values():
            await until(lambda ear=ear: readings[-1] in ear.heard)  # type: ignore[misc]
            assert [one for one in ear.heard if one in readings] == readings
        ears["can"].say(
            frame("no", *TEMP), frame("no", "motor"), frame("open", *ALERT), frame("shut", *ALERT)
        )
        await processed(lambda: len(panel.received[ALERT]) == 2, panel)
        ears["uart"].say(frame("open", *ALERT))
        await processed(lambda: len(panel.received[ALERT]) == 3, panel)
        assert panel.received == {ALERT: [b"open", b"shut", b"open"]}
        process.send_signal(signal.SIGTERM)
        output, _ = await asyncio.wait_for(process.communicate(), 20)
        assert b"balanced" in output
        assert re.search(rb"tmq:\S+: in 40, out 3, dropped 0, filtered: dropped \d+ pattern", output), output


def _say(ear: Ear, *pattern: str) -> bool:
    ear.say(frame("hello", *pattern))
    return True


def test_there_are_four_that_run() -> None:
    assert len(RUNNABLE) >= 4


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_check_finds_nothing_in_an_example(path: Path) -> None:
    assert [str(finding) for finding in check(loads(path.read_text(), path.name))] == []
