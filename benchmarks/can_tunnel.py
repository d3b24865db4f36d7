"""`python -m benchmarks.can_tunnel --seconds 10 --rate 20000 --kill 0`: CAN to trunk to CAN, frame by frame.

Numbered CAN frames go through two redundant gateways, a trunk and a third gateway to another CAN bus, and
some come back, while the forwarding one is killed (-9) every `--kill` seconds, and started again. The
gateways are processes of the program; the buses are sockets that carry `can_frame`. It counts what was lost,
doubled, out of order and echoed, and the processor's time a frame. What was sent while the forwarding gateway
was dead and the other one was not ready yet is counted apart: nobody listened. The 10 minutes of issue 38:
`--seconds 600 --kill 60 --rate 2000`.
"""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, Process
from bisect import bisect
from collections import Counter
from math import inf
from pathlib import Path

from appliance.status.client import ask, status_socket
from benchmarks.command import Command, run_as_command
from bridges.media.can.socketcan import pack_frame, unpack_frame
from tests.helpers.ports import free_port
from tests.rigs.can_wire import Wire

TOPOLOGY = """
name: tunnel
gateways: {{a: {{address: 127.0.0.1}}, b: {{address: 127.0.0.1}}, far: {{address: 127.0.0.1}}}}
brokers: {{x: {{on: far, listen: "tcp://127.0.0.1:{0}"}}}}
buses: {{road: {{on: far, listen: {{url: "tcp://127.0.0.1:{1}", trunk: true}}}}}}
bridges:
  near:
    on: [a, b]
    join:
      - bus: road
        trunk: true
      - can: {{channel: near, age_ms: 5000, queue_bytes: 4194304}}
        protocol: {{raw: {{root: car, receive: "0x000-0x3ff", send: "0x400-0x7ff"}}}}
  end:
    on: far
    join:
      - bus: road
        trunk: true
      - can: {{channel: away, age_ms: 5000, queue_bytes: 4194304}}
        protocol: {{raw: {{root: car, receive: "0x400-0x7ff", send: "0x000-0x3ff"}}}}
"""
_TICK_S = 0.002
_BACK = 20  # every so many frames one goes the other way
_SETTLE_S = 3.0
_ABSENT_S = 2.0  # of a killed gateway
_ASK_S = 0.02  # between two looks whether a gateway is ready
_EARLY_S = 0.2  # before a kill: what the gateway that is not ready heard by then, it does not trust (`blind`)
Spans = list[tuple[float, float]]
"""Times, from and to."""


class Flow:
    """Frames in one direction, numbered, under 97 identifiers from `first` on."""

    def __init__(self, first: int) -> None:
        self._first = first
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self.sent = self.late = self.echoed = self._next = 0
        self.counts = Counter[int]()
        self._batches: list[tuple[float, int]] = []

    def frame(self, now_s: float = 0.0) -> bytes:
        """Return the next frame, which is sent at a time in seconds."""
        if not self._batches or now_s > self._batches[-1][0]:
            self._batches.append((now_s, self.sent))
        raw = pack_frame((self._first + self.sent % 97, self.sent.to_bytes(8, "big"), 0))
        self.sent += 1
        return raw

    def hear(self, raw: bytes) -> None:
        """Note a frame that a gateway has sent; one of the other direction is an echo."""
        frame = unpack_frame(raw)
        if frame is None or not self._first <= frame[0] < self._first + 0x400:
            self.echoed += 1
            return
        number = int.from_bytes(frame[1], "big")
        self.counts[number] += 1
        self.late += number < self._next
        self._next = max(self._next, number + 1)

    def lost(self) -> list[float]:
        """Return when each frame was sent that nobody heard."""
        starts = [number for _, number in self._batches]
        missing = (number for number in range(self.sent) if number not in self.counts)
        return [self._batches[bisect(starts, number) - 1][0] for number in missing]

    @property
    def doubled(self) -> int:
        return sum(self.counts.values()) - len(self.counts)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was doubled, out of order or echoed."""
        return not self.late and not self.echoed and not self.doubled

    def words(self, unheard: Spans) -> str:
        """Return the counts; those lost in the times of `unheard` apart."""
        lost = self.lost()
        alone = sum(1 for at in lost if is_in(unheard, at))
        counts = f"{self.sent} sent, {len(lost) - alone} lost, {alone} unheard, {self.doubled} doubled"
        return f"{counts}, {self.late - self.doubled} out of order, {self.echoed} echoed"


def is_in(spans: Spans, at: float) -> bool:
    """Tell whether a time is in one of these spans."""
    return any(first <= at <= last for first, last in spans)


class Trial:
    """The wires and the processes of one run."""

    def __init__(self, place: Path) -> None:
        loop = asyncio.get_running_loop()
        self.place, self.there, self.back = place, Flow(0), Flow(0x400)
        self.near = Wire(place / "near", loop, self.back.hear)
        self.away = Wire(place / "away", loop, self.there.hear)
        self.file = place / "tunnel.yaml"
        self.file.write_text(TOPOLOGY.format(free_port(), free_port()))
        self.processes: dict[str, Process] = {}
        self.takeovers = 0
        self.unheard: Spans = []  # a gateway was killed, and the other one not ready yet
        self._ready: set[str] = set()
        self._watching = set[asyncio.Task[None]]()

    async def start(self, *gateways: str) -> None:
        for name in gateways:
            run = "run", str(self.file), "--gateway", name, "--run-directory", str(self._sockets(name))
            words = "-m", "tests.rigs.can_wire", str(self.place), *run
            made = await asyncio.create_subprocess_exec(
                sys.executable, *words, stdout=DEVNULL, stderr=DEVNULL
            )
            self.processes[name] = made
            watch = asyncio.ensure_future(self._watch(name, made))
            self._watching.add(watch)
            watch.add_done_callback(self._watching.discard)

    def _sockets(self, gateway: str) -> Path:
        return self.place / f"run-{gateway}"

    async def _watch(self, name: str, process: Process) -> None:
        """Note when a gateway is ready to take over."""
        socket = self._sockets(name) / status_socket(())
        while process.returncode is None and name not in self._ready and name != "far":
            with contextlib.suppress(OSError, ValueError):
                status = await asyncio.to_thread(ask, socket)
                if status["pid"] == process.pid and all(one["ready"] for one in status["candidates"]):
                    self._ready.add(name)
                    self._heard()
            await asyncio.sleep(_ASK_S)

    def _heard(self) -> None:
        """Note that somebody listens from now on."""
        if self.unheard and self.unheard[-1][1] == inf:
            self.unheard[-1] = self.unheard[-1][0], asyncio.get_running_loop().time()

    async def ready(self) -> None:
        """Wait until a frame crosses both ways."""
        async with asyncio.timeout(60):
            while len(self.near) < 2 or not self.there.counts or not self.back.counts:
                self.near.say(self.there.frame())
                self.away.say(self.back.frame())
                await asyncio.sleep(0.1)
        await asyncio.sleep(_SETTLE_S)
        self.there.begin()
        self.back.begin()

    async def load(self, rate: float, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        while (passed_s := loop.time() - began_s) < seconds:
            now_s = began_s + passed_s
            while self.there.sent < rate * passed_s:
                self.near.say(self.there.frame(now_s))
                if self.there.sent % _BACK == 0:
                    self.away.say(self.back.frame(now_s))
            await asyncio.sleep(_TICK_S)
        await asyncio.sleep(_SETTLE_S)

    async def kill(self, every_s: float) -> None:
        """Kill the gateway that forwards, again and again, and start it anew."""
        while every_s:
            await asyncio.sleep(every_s - _ABSENT_S)
            name, found = next(
                (name, one) for name, one in self.processes.items() if one.pid == self.near.speaker
            )
            self._ready.discard(name)
            if not self._ready:
                self.unheard.append((asyncio.get_running_loop().time() - _EARLY_S, inf))
            found.send_signal(signal.SIGKILL)
            await found.wait()
            self.takeovers += 1
            await asyncio.sleep(_ABSENT_S)
            await self.start(name)

    def used_s(self) -> float:
        """Return the processor's time that the gateways have used, in seconds."""
        ticks = 0
        for one in (one for one in self.processes.values() if one.returncode is None):
            fields = Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        for watch in self._watching:
            watch.cancel()
        for one in self.processes.values():
            if one.returncode is None:
                one.kill()
        self.near.close()
        self.away.close()


async def run(rate: float, seconds: float, every_s: float) -> int:
    """Run the trial. Return 0 if nothing that somebody could hear was lost, and nothing doubled, out of order
    or echoed."""
    with tempfile.TemporaryDirectory() as place:
        trial = Trial(Path(place))
        try:
            await trial.start("far", "a", "b")
            await trial.ready()
            before_s = trial.used_s()
            killer = asyncio.ensure_future(trial.kill(every_s))
            await trial.load(rate, seconds)
            killer.cancel()
            used_s = 0.0 if every_s else trial.used_s() - before_s
        finally:
            trial.close()
    flows = trial.there, trial.back
    print(f"there: {trial.there.words(trial.unheard)}\nback:  {trial.back.words(trial.unheard)}")
    print(f"{trial.takeovers} takeovers; {trial.near.lost + trial.away.lost} found no room in a socket")
    if not every_s:
        frame_us = used_s / sum(flow.sent for flow in flows) * 1e6
        print(f"{frame_us:.1f} us of processor a frame, of three gateways")
    whole = all(is_in(trial.unheard, at) for flow in flows for at in flow.lost())
    return 0 if whole and all(flow.is_clean for flow in flows) else 1


def main() -> int:
    """Return the exit status."""
    parser = Command("benchmarks.can_tunnel", __doc__)
    parser.add_seconds(10.0)
    parser.add_argument("--rate", type=float, default=20_000.0, help="frames a second (20000)")
    parser.add_argument(
        "--kill", type=float, default=0.0, help="seconds from one kill -9 to the next; 0: none"
    )
    options = parser.parse_args()
    return asyncio.run(run(options.rate, options.seconds, options.kill))


if __name__ == "__main__":
    run_as_command(main)
