"""Time a reload that adds one listener: `python -m benchmarks.reload [BRIDGES ...]`.

A gateway of many bridges, each from one bus to one of eight multicast trunks that they share. Printed for
each number of bridges: how long the event loop stood at most while nothing was reloaded, and during the
reload (in wall time, so the load of the machine is in both); the processor time of the change on the loop,
and that of the thread that prepares it: reading, checking, resolving and comparing. Ends with 1 if the
change on the loop takes more than 20 ms of processor time, or the thread more than 2 s.
"""

import argparse
import asyncio
import gc
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, ParamSpec, TypeVar

from appliance.commands.run import checked_wiring
from appliance.compose import Appliance
from appliance.following import Following
from appliance.parts.changes import Change
from appliance.process.serve import SWITCH_S, settle_garbage
from appliance.reload.reloader import Reloader
from topologies.resolved.resolve import Resolved, resolve

LOOP_MS: Final = 20.0
THREAD_S: Final = 2.0
TRUNKS: Final = 8
BEAT_S: Final = 0.001
QUIET_S: Final = 1.0
HEAD: Final = """\
name: plant
gateways: {{gw: {{address: 127.0.0.1}}, far: {{address: 127.0.0.2}}}}
buses:
  hall:
    on: gw
    listen: ["ipc://{0}/hall", {{url: "ipc://{0}/trunk", trunk: true}}{1}]
  yard: {{on: far, listen: [{{url: "tcp://127.0.0.2:17001", trunk: true}}]}}
bridges:
"""
BRIDGE: Final = """\
  {0}{1}:
    on: {2}
    pattern: [{0}{1}]
    join:
      - bus: {3}
      - multicast: {{group: 239.9.42.{4}, port: 9943, interface: 127.0.0.1, hops: 0}}
        trunk: true
"""
P = ParamSpec("P")
R = TypeVar("R")


class Reload(NamedTuple):
    """One reload: stands of the loop in ms, and processor time of the change in ms and of the thread in s."""

    idle_ms: float
    stood_ms: float
    change_ms: float
    thread_s: float


def plant(bridges: int, directory: Path, more: str = "") -> str:
    """Return a topology with that many bridges on `gw`; `more` is one more listener."""
    near = [BRIDGE.format("b", n, "gw", "hall", 1 + n % TRUNKS) for n in range(bridges)]
    far = [BRIDGE.format("f", n, "far", "yard", 1 + n) for n in range(TRUNKS)]
    listener = f', "ipc://{directory}/{more}"' if more else ""
    return "".join([HEAD.format(directory, listener), *near, *far])


async def beat(gaps_s: list[float]) -> None:
    """Note how long the loop took to come back, again and again."""
    last = time.perf_counter()
    while True:
        await asyncio.sleep(BEAT_S)
        now = time.perf_counter()
        gaps_s.append(now - last - BEAT_S)
        last = now


class Timed:
    """Adds up the processor time of the calling threads in some functions, in seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def of(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return a function that does the same and is timed."""

        def timed(*args: P.args, **kwargs: P.kwargs) -> R:
            before = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.thread_time() - before

        return timed


class _TimedAppliance(Appliance):
    """An appliance that times the change on the loop."""

    def __init__(self, resolved: Resolved) -> None:
        super().__init__(resolved)
        self.timed = Timed()

    def change(self, following: Following) -> list[Change]:
        return self.timed.of(super().change)(following)


class _TimedReloader(Reloader):
    """A reloader that times what its thread does."""

    def __init__(self, appliance: Appliance, file: str) -> None:
        super().__init__(appliance, file, checked_wiring)
        self.timed = Timed()

    def _prepare(self, tell: Callable[[str], None]) -> Following:
        return self.timed.of(super()._prepare)(tell)


async def reload(bridges: int, directory: Path) -> Reload:
    """Run a gateway, reload it once, and return what that took. Raises `AssertionError` if it fails."""
    file = directory / "plant.yaml"
    file.write_text(plant(bridges, directory))
    appliance = _TimedAppliance(resolve(checked_wiring(str(file)), "gw"))
    reloader = _TimedReloader(appliance, str(file))
    appliance.open(asyncio.get_running_loop())
    settle_garbage()
    gaps_s = list[float]()
    beats = asyncio.create_task(beat(gaps_s))
    try:
        await asyncio.sleep(QUIET_S)
        idle_s = max(gaps_s[len(gaps_s) // 2 :])
        gaps_s.clear()
        file.write_text(plant(bridges, directory, "more"))
        outcome = await reloader.reload()
        await asyncio.sleep(10 * BEAT_S)
    finally:
        beats.cancel()
        appliance.close()
        gc.unfreeze()
    assert len(outcome.changes) == 1
    assert outcome.good
    return Reload(idle_s * 1e3, max(gaps_s) * 1e3, appliance.timed.seconds * 1e3, reloader.timed.seconds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reload", description=__doc__)
    parser.add_argument("bridges", nargs="*", type=int, default=[60, 120, 500])
    numbers = parser.parse_args().bridges
    logging.disable(logging.WARNING)  # a note about each bridge
    sys.setswitchinterval(SWITCH_S)  # as `buscoupler run` does
    good = True
    print("bridges  stood at most ms  (idle)  change ms  thread s")
    for number in numbers:
        with tempfile.TemporaryDirectory() as directory:
            found = asyncio.run(reload(number, Path(directory)))
        stands = f"{found.stood_ms:17.1f} {found.idle_ms:7.1f}"
        print(f"{number:7} {stands} {found.change_ms:10.1f} {found.thread_s:9.2f}", flush=True)
        good = good and found.change_ms <= LOOP_MS and found.thread_s <= THREAD_S
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
