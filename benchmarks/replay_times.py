"""`python -m benchmarks.replay_times`: canplayer and `capture replay` play one log; who keeps its times?

It boots the virtual machine of the tests, because this kernel may have no CAN. There candump writes down what
is on vcan0 while each of the two plays the log, in turns. A frame is late by the time since the first frame,
less that in the log; the least of a run is taken off. The clock of the machine counts its instructions, one a
nanosecond, so other work on this machine makes nothing late there.
"""

import asyncio
import os
import random
import sys
import tempfile
from argparse import Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.can_machine import BOOT_S, done, dumped, in_machine, still
from benchmarks.command import Command, run_as_command
from tests.kernel import machine
from tests.kernel.guest.logs import plan_of

_BEGAN_US = 1_700_000_000 * 10**6
Line = tuple[int, str]


def made(path: Path, rate: float, seconds: float) -> list[Line]:
    """Write a log of frames with random pauses; return the time in us and the frame of each line."""
    chance, at_us, found = random.Random(1), float(_BEGAN_US), list[Line]()
    while at_us < _BEGAN_US + seconds * 1e6:
        found.append((int(at_us), f"{chance.randrange(1 << 11):03X}#{chance.randbytes(8).hex().upper()}"))
        at_us += chance.expovariate(rate) * 1e6
    path.write_text("".join(f"({us / 1e6:.6f}) vcan0 {frame}\n" for us, frame in found))
    return found


def heard(log: Path) -> list[Line]:
    """Return what candump wrote down."""
    words = (line.split() for line in log.read_text().splitlines())
    return [(round(float(at[1:-1]) * 1e6), frame) for at, _, frame in words]


def late_us(played: list[Line], log: list[Line]) -> list[int]:
    """Return in order of size how late each frame was, beside the one that was least late."""
    shifts = sorted(had - due for (had, _), (due, _) in zip(played, log, strict=True))
    return [shift - shifts[0] for shift in shifts]


async def canplayer(path: str) -> None:
    await done("canplayer", "-I", path)


async def ours(path: str) -> None:
    from appliance.probe.replay import played

    options = Namespace(keys=None, loop=1, fast=False, speed=1.0)
    if await played(plan_of(path, "can:vcan0?protocol=raw"), options):
        raise OSError("the replay failed")


async def inside(rate: float, seconds: float, repeat: int) -> int:
    """Play in the machine. Return 0 if all frames came in order and ours were not later at p99."""
    players: dict[str, Callable[[str], Awaitable[None]]] = {"canplayer": canplayer, "replay": ours}
    worst, is_good = {name: list[int]() for name in players}, True
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "log")
        log = made(path, rate, seconds)
        print(f"{len(log)} frames, {rate:.0f}/s", flush=True)
        for name in [*players] * repeat:
            async with dumped(Path(place), "vcan0") as dump:
                await players[name](str(path))
                await still(dump)
                got = heard(dump)
            is_good &= [frame for _, frame in got] == [frame for _, frame in log]
            if len(got) == len(log):
                late = late_us(got, log)
                p50, p99 = late[len(late) // 2], late[len(late) * 99 // 100]
                worst[name].append(p99)
                print(f"{name}: late by {p50} us (p50), {p99} us (p99), {late[-1]} us at most", flush=True)
            else:
                print(f"{name}: {len(got)} of {len(log)} frames", flush=True)
    middle = {name: sorted(some)[len(some) // 2] for name, some in worst.items() if some}
    print(f"frames equal: {'yes' if is_good else 'no'}; p99, medians: {middle}")
    return 0 if is_good and len(middle) == 2 and middle["replay"] <= middle["canplayer"] else 1


def main() -> int:
    """Return the exit status."""
    parser = Command("benchmarks.replay_times", __doc__)
    parser.add_seconds(5.0)
    parser.add_argument("--rate", type=float, default=500.0, help="frames a second")
    parser.add_repeat(3)
    options = parser.parse_args()
    if machine.IN_GUEST in os.environ:
        return asyncio.run(inside(options.rate, options.seconds, options.repeat))
    if reason := machine.missing():
        print(reason, file=sys.stderr)
        return 2
    words = "--seconds", str(options.seconds), "--rate", str(options.rate), "--repeat", str(options.repeat)
    with tempfile.TemporaryDirectory(prefix="machine-") as share:
        command = [sys.executable, "-m", "benchmarks.replay_times", *words]
        limit_s = 40 * options.repeat * options.seconds + BOOT_S
        return in_machine(command, Path(share), limit_s)


if __name__ == "__main__":
    run_as_command(main)
