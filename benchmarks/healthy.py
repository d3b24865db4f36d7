"""A check of the audit: healthy runs of the example topologies pass it.

    python -m benchmarks.healthy --seconds 600

Every example that can run on one machine does, all at once, with a tap on each part. From each of its doors
frames come of several patterns. Then each capture is audited: status 0 is due, as nothing went wrong. Of
`cold-chain`, which needs I2C and CAN interfaces, `failover` and `field` have the parts.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.command import Command, run_as_command
from devices.child import settle
from topologies.loading.loader import loads

if TYPE_CHECKING:
    from topologies.model import Topology

PERIOD_S: Final = 0.05
PATTERNS: Final = (("motor", "speed"), ("fridge", "temp"), ("oven", "temp"), ("room-12", "temp"))
_SETTLE_S: Final = 1.0


def with_taps(text: str, directory: Path) -> str:
    """Add a tap for each part of each gateway to a topology, all to one capture."""
    taps = "".join(
        f'  recorder-{n}: {{on: {gateway}, tap: {part}, directory: "{directory}"}}\n'
        for n, (gateway, part) in enumerate(_parts(loads(text, "healthy.yaml")))
    )
    if "\ndevices:\n" in text:
        return text.replace("\ndevices:\n", f"\ndevices:\n{taps}")
    return f"{text}devices:\n{taps}"


def _parts(topology: "Topology") -> Iterator[tuple[str, str]]:
    for name, bus in topology.buses.items():
        yield bus.on, name
    for name, bridge in topology.bridges.items():
        for gateway in bridge.on:
            yield gateway, name


async def run(path: Path, directory: Path, seconds: float) -> int:
    """Run a topology, and record it under `directory / "capture"`. Return how many frames were said."""
    from tests.appliance.examples import frame, relocated, running

    example = await asyncio.to_thread(path.read_text)
    text = with_taps(relocated(example, directory), directory / "capture")
    said = 0
    async with running(loads(text, path.name), directory) as ears:
        await asyncio.sleep(_SETTLE_S)  # what is said before a candidate has its lease is lost
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            for name, ear in ears.items():
                ear.say(frame(f"{name} {said}", *PATTERNS[said % len(PATTERNS)]))
                said += 1
            await asyncio.sleep(PERIOD_S)
        await asyncio.sleep(_SETTLE_S)
    return said


def audited(
    directory: Path, *where: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Audit what was recorded."""
    words = [sys.executable, "-m", "buscoupler", "audit", str(directory / "capture"), *where]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, env=env)


async def _run_all(paths: list[Path], root: Path, seconds: float) -> list[int]:
    directories = [root / path.stem for path in paths]
    for directory in directories:
        directory.mkdir()
    runs = (run(path, at, seconds) for path, at in zip(paths, directories, strict=True))
    return await asyncio.gather(*runs)


def main() -> int:
    from tests.appliance.examples import RUNNABLE

    parser = Command("benchmarks.healthy", __doc__)
    parser.add_seconds(600)
    options = parser.parse_args()
    is_wrong = False
    with tempfile.TemporaryDirectory() as name:
        said = asyncio.run(_run_all(RUNNABLE, Path(name), options.seconds))
        if not settle(60):
            print("the taps did not end")
            return 1
        for path, count in zip(RUNNABLE, said, strict=True):
            done = audited(Path(name) / path.stem)
            is_wrong |= done.returncode != 0
            text = f":\n{done.stdout}{done.stderr}" if done.returncode else ""
            print(f"{path.stem}: {count:,} frames said, audit ends with {done.returncode}{text}", flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    run_as_command(main)
