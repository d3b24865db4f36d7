"""`python -m benchmarks.can_tunnel --seconds 10 --rate 20000 --kill 0`: CAN to trunk to CAN, frame by frame.

Numbered CAN frames go through two redundant gateways, a trunk and a third gateway to another CAN bus, and
some come back, while the forwarding one is killed (-9) every `--kill` seconds, and started again. The
gateways are processes of the program; the buses are sockets that carry `can_frame`. It counts what was lost,
doubled, out of order and echoed, and the processor's time a frame. What was sent while the forwarding gateway
was dead and the other one was not ready yet is counted apart: nobody listened. The 10 minutes of issue 38:
`--seconds 600 --kill 60 --rate 2000`. With `--stop 4` both gateways are stopped again and again, one or
both, for up to 4 s: then frames may be lost, and none doubled.
"""

import asyncio
import random
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, Process
from pathlib import Path

from benchmarks.command import Command, run_as_command
from benchmarks.tunnel import Flow, Gateways, is_in, used
from tests.rigs.can_wire import Wire

_TICK_S = 0.002
_BACK = 20  # every so many frames one goes the other way
_SETTLE_S = 3.0


class Trial(Gateways):
    """The wires and the processes of one run."""

    def __init__(self, place: Path) -> None:
        super().__init__(place, "near", "away")
        loop = asyncio.get_running_loop()
        self.there, self.back = Flow(0), Flow(0x400)
        self.started: dict[str, Process] = {}
        self.near = Wire(place / "near", loop, self.back.hear)
        self.away = Wire(place / "away", loop, self.there.hear)

    async def run(self, *words: str) -> Process:
        command = sys.executable, "-m", "tests.rigs.can_wire", str(self.place), *words
        made = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL)
        self.started[words[words.index("--gateway") + 1]] = made
        return made

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

    async def stop(self, longest_s: float) -> None:
        """Stop one gateway of the two or both, again and again, for up to `longest_s` each time."""
        dice = random.Random(1)
        while longest_s:
            await asyncio.sleep(dice.uniform(0.05, 0.5))
            names = dice.choice(["a", "b", "ab", "ab"])
            self.signal(signal.SIGSTOP, *names)
            await asyncio.sleep(dice.uniform(0.05, longest_s))
            self.signal(signal.SIGCONT, *names)

    def signal(self, number: int, *names: str) -> None:
        for name in names:
            if self.started[name].returncode is None:
                self.started[name].send_signal(number)

    def close(self) -> None:
        super().close()
        self.near.close()
        self.away.close()


async def run(rate: float, seconds: float, every_s: float, stop_s: float) -> int:
    """Run the trial. Return 0 if nothing that somebody could hear was lost, and nothing doubled, out of order
    or echoed. Gateways that are stopped may lose some."""
    with tempfile.TemporaryDirectory() as place:
        trial = Trial(Path(place))
        try:
            await trial.start("far", "a", "b")
            await trial.ready()
            before_s = trial.used_s()
            faults = [asyncio.ensure_future(one) for one in (trial.kill(every_s), trial.stop(stop_s))]
            await trial.load(rate, seconds)
            for fault in faults:
                fault.cancel()
            trial.signal(signal.SIGCONT, *trial.started)
            after_s = trial.used_s()
            trial.accounts += [await trial.account(name) for name in sorted(trial.processes)]
        finally:
            trial.close()
    flows = trial.there, trial.back
    print(f"there: {trial.there.words(trial.unheard)}\nback:  {trial.back.words(trial.unheard)}")
    print(used(after_s, before_s, sum(flow.sent for flow in flows)))
    print("\n".join(trial.accounts))
    print(f"{trial.takeovers} takeovers; {trial.near.lost + trial.away.lost} found no room in a socket")
    whole = stop_s > 0 or all(is_in(trial.unheard, at) for flow in flows for at in flow.lost())
    return 0 if whole and all(flow.is_clean for flow in flows) else 1


def main() -> int:
    """Return the exit status."""
    parser = Command("benchmarks.can_tunnel", __doc__)
    parser.add_seconds(10.0)
    parser.add_argument("--rate", type=float, default=20_000.0, help="frames a second (20000)")
    parser.add_argument(
        "--kill", type=float, default=0.0, help="seconds from one kill -9 to the next; 0: none"
    )
    parser.add_argument("--stop", type=float, default=0.0, help="seconds of the longest stop; 0: none")
    options = parser.parse_args()
    return asyncio.run(run(options.rate, options.seconds, options.kill, options.stop))


if __name__ == "__main__":
    run_as_command(main)
