"""A check of the audit: what it says of takeovers is what listeners heard.

    python -m benchmarks.audited --topology failover,mesh --fault kill

Each shipped topology runs as processes, a recorder on each gateway, and somebody at each of its doors speaks
and listens. One gateway after the other is killed and started again, or stands still for two seconds. With
`--fault move` nothing is wrong: a reload makes another gateway the best, which takes over, and the audit must
be Green. The capture is audited, and each finding is compared with what was heard.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks.audited import content, devices, truth
from benchmarks.audited.outside import Door, line, opened, patterns
from benchmarks.audited.plant import Plant
from benchmarks.audited.shipped import FILES
from benchmarks.command import Command, run_as_command
from capture.reader import read
from tests.helpers import alone
from tests.helpers.peers import wait

RATE: Final = 20
_SURE_S: Final = 12.0  # stamps are sure by then (docs/failover.md)
_READY_S: Final = 2.0
_LOOK_S: Final = 0.01
_SHOWN: Final = 5


async def talk(doors: dict[str, Door], words: tuple[str, ...], seconds: float) -> None:
    """Let everybody speak in turn, `RATE` frames a second each."""
    loop = asyncio.get_running_loop()
    began_s, said = loop.time(), 0
    while loop.time() < began_s + seconds:
        for door in doors.values():
            door.look()
        while said < (loop.time() - began_s) * RATE:
            for door in doors.values():
                door.tell(said, words[said % len(words)])
            said += 1
        await asyncio.sleep(_LOOK_S)


async def run(plant: Plant, seconds: float, faults: int, fault: str) -> dict[str, Door]:
    """Let a plant run with traffic, and strike its gateways in turn. Return who was at its doors."""
    async with AsyncExitStack() as stack:
        line(plant, stack)
        await devices.started(plant, stack)
        stack.push_async_callback(plant.stop)
        for gateway in plant.topology.gateways:
            await plant.start(gateway)
        doors = await opened(plant, stack)
        await asyncio.sleep(_SURE_S if plant.has_leases else _READY_S)
        talking = asyncio.create_task(talk(doors, patterns(plant.name), seconds))
        for number in range(faults):
            await asyncio.sleep(seconds / (faults + 1))
            names = list(plant.topology.gateways)
            await plant.strike(names[number % len(names)], fault)
        await talking
        await asyncio.sleep(_READY_S)
        return doors


def audited(capture: Path) -> dict[str, Any]:
    """Return the tables of an audit, with all findings."""
    wait(lambda: not any(path.is_file() for path in (capture / "journal").rglob("*")), what="the last file")
    words = ["audit", str(capture), "--json", "--quiet", "--engine", "sail", "--limit", "1000000"]
    done = subprocess.run(
        [sys.executable, "-m", "buscoupler", *words], capture_output=True, text=True, env=alone(), check=False
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _unwell(found: dict[str, Any], fault: str) -> list[str]:
    """Return what is wrong with the verdict on a plant where nothing was wrong."""
    is_well = fault != "move" or found["verdict"]["color"] == "green"
    return [] if is_well else ["nothing went wrong, and the verdict is not Green"]


def judged(plant: Plant, doors: dict[str, Door], fault: str) -> list[str]:
    """Audit a capture, print what it says, and return what is wrong with that."""
    found, rows = audited(plant.capture), list(read(plant.capture))
    known, by_key = truth.recorded(rows), content.said(rows)
    where = truth.places(rows, doors)
    print(f"  {found['verdict']['color'].capitalize()}: {found['verdict']['text']}")
    for name, door in doors.items():
        heard = Counter(map(len, door.times.values()))
        print(f"  {name} ({where.get(name)}): said {len(door.said)}, heard {heard.total()}, twice {heard[2]}")
    print(f"  {truth.takeovers(rows)} takeovers")
    drops = truth.dropped(found["ledger"], where)
    return [
        *_unwell(found, fault),
        *truth.accused(found["findings"], by_key, where, doors),
        *truth.missed(found, by_key, known - truth.in_queues(doors, plant.killed_s), doors, drops),
    ]


def tried(name: str, options: argparse.Namespace) -> bool:
    """Run a trial of a topology, print what it showed, and return whether the audit was right."""
    with tempfile.TemporaryDirectory(prefix="audited-") as directory:
        plant = Plant(name, Path(directory))
        print(f"{name}, {options.fault}:", flush=True)
        doors = asyncio.run(run(plant, options.seconds, options.faults, options.fault))
        wrong = judged(plant, doors, options.fault)
    for text in wrong[:_SHOWN]:
        print(f"  {text}")
    print(f"  {len(wrong)} wrong" if wrong else "  the audit says what was heard", flush=True)
    return not wrong


def main() -> int:
    parser = Command("benchmarks.audited", __doc__)
    parser.add_argument("--topology", default=",".join(FILES), help="names, with commas (all)")
    parser.add_argument("--seconds", type=int, default=45, help="of traffic (45)")
    parser.add_argument("--faults", type=int, default=2, help="gateways struck (2)")
    parser.add_argument("--fault", choices=("kill", "freeze", "move"), default="kill", help="(kill)")
    options = parser.parse_args()
    right = [tried(name, options) for name in options.topology.split(",")]
    return int(not all(right))


if __name__ == "__main__":
    run_as_command(main)
