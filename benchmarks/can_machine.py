"""`python -m benchmarks.can_machine --seconds 600 --kill 60`: the tunnel of `can_tunnel` on the kernel's CAN.

It boots the virtual machine of the tests. There cangen makes the frames, candump writes down what is on both
buses, and the forwarding one of two redundant gateways is killed (-9) every `--kill` seconds. First it
measures how many frames a second cangen to candump keeps there. Without `--rate` it then looks for what the
gateways keep, up to half of that, and takes it, or half of it with kills. All share one emulated processor,
whose clock counts its instructions, one a nanosecond: where this machine is busy, nothing there is late, but
all takes longer here. Where that processor is full, cangen is slower than it was asked to be: the rate that
is told is the one at which frames came, and a higher one is not looked for. Imports would take long there, so
each gateway is forked from a process that has made them all; running the gateways on this machine first tells
which.
"""

import asyncio
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

from benchmarks.command import Command, run_as_command
from benchmarks.tunnel import Flow, Gateways, is_in, used
from tests.kernel import machine

_MODULES = "BUSCOUPLER_MODULES"  # the path of a file that names them
_LOOK_S = 12
_forks = multiprocessing.get_context("forkserver")
_STEADY = "-icount shift=0,sleep=off"
_FRAMES = 20_000
_RUNG_S = 6.0
_REACHED = 0.9
_FIRST = 50.0
BOOT_S = 600.0
_LADDER_S = 2400.0
_BACK_MS = 50
_QUIET_S = 3.0
_BUSES = "vcan0", "vcan1"
_THERE, _BACK = 0x123, 0x523


async def done(*command: str, is_bus: bool = False) -> None:
    """Run a command to its end. Raises OSError if it fails.

    With `is_bus` it has real-time priority: a bus does not wait until a gateway leaves the processor to it.
    """
    process = await asyncio.create_subprocess_exec(*command)
    if is_bus:
        os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(1))
    if await process.wait():
        raise OSError(f"failed: {' '.join(command)}")


async def make_bus(name: str) -> None:
    """Make one more bus beside the one that the machine has."""
    await done("ip", "link", "add", name, "type", "vcan")
    await done("ip", "link", "set", name, "up")


@asynccontextmanager
async def running(*command: str, output: Path | None = None) -> AsyncIterator[Process]:
    """Run a program until the block ends."""
    with (output or Path("/dev/null")).open("wb") as file:
        process = await asyncio.create_subprocess_exec(*command, stdout=file)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def imported(place: Path) -> list[str]:
    """Run a gateway of each kind on this machine, and return the modules that they import."""
    found = dict[str, None]()
    gateways = Machine(place, *_BUSES)
    for name in ("far", "a"):
        words = "run", str(gateways.file), "--gateway", name, "--run-directory", str(place / name)
        command = ["timeout", "-s", "INT", str(_LOOK_S), sys.executable, "-X", "importtime", "-m"]
        ended = subprocess.run([*command, "buscoupler", *words], capture_output=True, text=True, check=False)
        found |= dict.fromkeys(re.findall(r"^import time:.*\| +([\w.]+)$", ended.stderr, re.MULTILINE))
    return [name for name in found if "__main__" not in name]


def listeners(bus: str) -> int:
    """Return the number of sockets that hear all frames of a bus."""
    return Path("/proc/net/can/rcvlist_all").read_text().count(f" {bus} ")


@asynccontextmanager
async def dumped(place: Path, bus: str) -> AsyncIterator[Path]:
    """Let candump write down what is on a bus; yield the file once it listens."""
    log, before = place / f"{bus}.log", listeners(bus)
    async with running("candump", "-L", "-r", str(8 << 20), bus, output=log):
        while listeners(bus) == before:
            await asyncio.sleep(0.05)
        yield log


def frames(log: Path, identifier: int) -> Iterator[tuple[float, int]]:
    """Yield time (seconds of the machine) and number of each frame that cangen made with an identifier."""
    offset_s = time.time() - time.monotonic()
    wanted = f"{identifier:03X}#"
    with log.open() as file:
        for line in file:
            at, _, frame = line.split()
            if frame.startswith(wanted):
                yield float(at[1:-1]) - offset_s, int.from_bytes(bytes.fromhex(frame[4:]), "little")


def account(source: Path, sink: Path, identifier: int) -> Flow:
    """Return what became of the frames that cangen put on one bus and a gateway on the other."""
    flow = Flow(identifier)
    for at_s, number in frames(source, identifier):
        flow.echoed += number < flow.sent
        while flow.sent <= number:
            flow.say(at_s)
    for _, number in frames(sink, identifier):
        flow.take(number)
    return flow


async def still(*logs: Path) -> None:
    """Wait until nothing is written any more."""
    sizes = [0]
    while sizes != (now := [log.stat().st_size for log in logs]):
        sizes = now
        await asyncio.sleep(_QUIET_S)


async def kept(place: Path) -> float:
    """Return the frames a second that cangen sends and candump has written down."""
    async with dumped(place, "vcan0") as log:
        began_s = time.monotonic()
        await done("cangen", "vcan0", "-g", "0", "-I", "123", "-L", "8", "-D", "i", "-n", str(_FRAMES))
        while log.read_bytes().count(b"\n") < _FRAMES and time.monotonic() - began_s < BOOT_S:
            await asyncio.sleep(0.05)
        return _FRAMES / (time.monotonic() - began_s)


class Forked:
    """A process that was forked, as `Started` has it."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        self.pid, self.kill = process.pid or 0, process.kill

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    async def wait(self) -> None:
        await asyncio.to_thread(self._process.join)


def program(log: str, words: list[str]) -> None:
    """Run the program in a process that was forked."""
    from appliance.commandline.cli import main as run

    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.exit(run(words))


class Machine(Gateways):
    """Three gateways between the buses of this machine, where each question takes long."""

    ask_s, answer_s = 2.0, 30.0
    broker = ", lease_ms: 2000, lease_max_ms: 8000"

    async def run(self, *words: str) -> Forked:
        log = str(self.place / f"{words[3]}.log")
        process = _forks.Process(target=program, args=(log, list(words)), daemon=True)
        await asyncio.to_thread(process.start)
        return Forked(process)

    def logs(self) -> str:
        """Return the end of what each gateway said."""
        return "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in self.place.glob("*.log"))

    async def ready(self) -> None:
        """Wait until one gateway forwards, the other one could, and a frame has crossed."""
        async with asyncio.timeout(BOOT_S):
            while len(self.set_up) < 2:
                if ended := [name for name, one in self.processes.items() if one.returncode is not None]:
                    raise OSError(f"ended at once: {', '.join(ended)}")
                await asyncio.sleep(0.5)
            async with dumped(self.place, "vcan1") as log:
                while b"001#" not in log.read_bytes():
                    await done("cansend", "vcan0", "001#00")
                    await asyncio.sleep(0.5)
        await asyncio.sleep(_QUIET_S)

    async def load(self, rate: float, seconds: float) -> tuple[Flow, Flow]:
        """Let cangen send at a rate; return what became of the frames of both ways."""
        make, gap_ms = ("-L", "8", "-D", "i"), f"{1000 / rate:.3f}"
        async with dumped(self.place, "vcan0") as near, dumped(self.place, "vcan1") as away:
            async with running("cangen", "vcan1", "-g", str(_BACK_MS), "-I", f"{_BACK:X}", *make):
                count = str(round(rate * seconds))
                words = "-g", gap_ms, "-I", f"{_THERE:X}", *make, "-n", count
                await done("cangen", "vcan0", *words, is_bus=True)
            await still(near, away)
            return account(near, away, _THERE), account(away, near, _BACK)

    async def kept(self, aim: float) -> float:
        """Return the highest rate up to `aim`, of those that double, at which nothing was lost."""
        kept, rate = 0.0, _FIRST
        while True:
            flow, back = await self.load(rate, _RUNG_S)
            if not said(flow, back, self):
                break
            kept = flow.rate
            if kept < _REACHED * rate or rate == aim:
                break
            rate = min(2 * rate, aim)
        return kept or _FIRST


def said(flow: Flow, back: Flow, gateways: Gateways) -> bool:
    """Print what became of all frames; return whether nothing that somebody could hear was lost, and nothing
    doubled, out of order or echoed."""
    print(f"at {flow.rate:.0f} frames/s: {flow.words(gateways.unheard)}")
    print(f"  back: {back.words(gateways.unheard)}", flush=True)
    whole = all(is_in(gateways.unheard, at) for one in (flow, back) for at in one.lost())
    return whole and flow.is_clean and back.is_clean


async def inside(rate: float, seconds: float, every_s: float) -> int:
    """Run the trial in the machine."""
    await make_bus(_BUSES[1])
    with tempfile.TemporaryDirectory() as place:
        most = await kept(Path(place))
        print(f"cangen to candump keeps {most:.0f} frames/s", flush=True)
        gateways = Machine(Path(place), *_BUSES)
        try:
            began_s = time.monotonic()
            await gateways.start("far", "a", "b")
            await gateways.ready()
            print(f"the gateways are ready after {time.monotonic() - began_s:.0f} s", flush=True)
            chosen = rate or await gateways.kept(most / 2)
            chosen /= 1 if rate or not every_s else 2  # a gateway that starts takes the processor, too
            killer = asyncio.ensure_future(gateways.kill(every_s))
            before_s = gateways.used_s()
            flows = await gateways.load(chosen, seconds)
            killer.cancel()
            gateways.accounts += [await gateways.account(name) for name in sorted(gateways.processes)]
            print(used(gateways.used_s(), before_s, sum(flow.sent for flow in flows)))
            print("\n".join(gateways.accounts))
            share = flows[0].rate / most
            print(f"{gateways.takeovers} takeovers; {share:.0%} of what cangen to candump keeps")
            return 0 if said(*flows, gateways) else 1
        except TimeoutError:
            print(f"not ready in {BOOT_S:.0f} s:\n{gateways.logs()}")
            return 1
        finally:
            gateways.close()


def in_machine(command: Sequence[str], share: Path, most_s: float) -> int:
    """Run a command in the machine, whose clock counts instructions. Print its output, return its status."""
    result = machine.run(command, share, most_s, _STEADY)
    print(result.output or result.console)
    return 1 if result.status is None else result.status


def main() -> int:
    """Return the exit status."""
    parser = Command("benchmarks.can_machine", __doc__)
    parser.add_seconds(60.0)
    parser.add_argument("--rate", type=float, default=0.0, help="frames a second (what the gateways keep)")
    parser.add_argument("--kill", type=float, default=0.0, help="seconds from one kill -9 to the next")
    options = parser.parse_args()
    if machine.IN_GUEST in os.environ:
        _forks.set_forkserver_preload(Path(os.environ[_MODULES]).read_text().split())
        return asyncio.run(inside(options.rate, options.seconds, options.kill))
    if reason := machine.missing():
        print(reason, file=sys.stderr)
        return 2
    words = "--seconds", str(options.seconds), "--rate", str(options.rate), "--kill", str(options.kill)
    with tempfile.TemporaryDirectory(prefix="machine-") as share:
        modules = Path(share) / "modules"
        with tempfile.TemporaryDirectory() as place:
            modules.write_text("\n".join(imported(Path(place))))
        command = ["env", f"{_MODULES}={modules}", sys.executable, "-m", "benchmarks.can_machine", *words]
        most_s = 20 * options.seconds + 2 * BOOT_S + (0.0 if options.rate else _LADDER_S)
        return in_machine(command, Path(share), most_s)


if __name__ == "__main__":
    run_as_command(main)
