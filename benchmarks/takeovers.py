"""`python -m benchmarks.takeovers --count 200 --seed 1`: measure takeovers under load (docs/failover.md).

Numbered frames go both ways through two redundant gateways, while processes are killed and frozen, links and
brokers go down, and partitions come and go. It counts lost and duplicated frames, and the longest wait.
"""

import argparse
import asyncio
import contextlib
import json
import random
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from struct import Struct

from benchmarks.command import Command, run_as_command
from benchmarks.takeover_rig import Program, Rig, until
from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.uart.link import UartLink
from bridges.media.uart.medium import Uart
from bus.hub import Hub, Link, Pipe
from bus.leases.wire import LEASE_MS
from bus.ledger import Stats
from bus.transports.links import make_link
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, split, wrap
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern

FAULTS = (
    "stop",
    "kill",
    "freeze",
    "link down",
    "broker down",
    "all brokers down",
    "broker and bridge",
    "partition",
)
SETUPS = (("can", True), ("can", False), ("uart", True), ("uart", False))
BODY = Struct(">Id")
PATTERN = Pattern("motor")
CATCH_UP_S = 5.0


class Notes:
    """It notes what an application at one end has sent, and when it received each number."""

    def __init__(self, token: int) -> None:
        self.token = token
        self.sent: list[float] = []
        self.heard: dict[int, list[float]] = {}
        self.remembered = 0  # copies that a receiver drops because it remembers their keys
        self.strays: dict[int, int] = {}  # number of a frame of ours -> how often it came back

    def say(self) -> None:
        """Send the next number."""
        raise NotImplementedError

    def note(self, token: int, number: int, now: float) -> None:
        if token == self.token:
            self.strays[number] = self.strays.get(number, 0) + 1
        else:
            self.heard.setdefault(number, []).append(now)

    def close(self) -> None:
        """Stop, and hear nothing more."""
        raise NotImplementedError


class Station(Notes, Pipe):
    """An application on a link. It sends numbered frames, and notes when it received each number."""

    def __init__(self, token: int, link: Link, envelopes: bool) -> None:
        super().__init__(token)
        self.name, self.stats = "station", Stats()
        self.hub, self.end = Hub(), link
        self.keys: set[int] = set()
        self._envelopes, self._origin = envelopes, random.getrandbits(32)
        self.hub.attach(self)
        link.open(self.hub, asyncio.get_running_loop())

    def say(self) -> None:
        now = asyncio.get_running_loop().time()
        frame = pack(PUB, (*PATTERN, self.token), BODY.pack(len(self.sent), now) + b"." * 28)
        message = wrap(frame, Envelope(self._origin, len(self.sent))) if self._envelopes else frame
        self.sent.append(now)
        self.hub.publish(from_payloads([message]), self)

    def send(self, batch: Batch) -> None:
        now = asyncio.get_running_loop().time()
        for message in payloads(batch):
            found = split(message)
            if found is not None:
                self._hear(*found, now)

    def _hear(self, envelope: Envelope | None, frame: bytes, now: float) -> None:
        if envelope is not None:
            key = envelope.origin << 32 | envelope.sequence
            if key in self.keys:
                self.remembered += 1
                return
            self.keys.add(key)
        if frame[4:8] != PATTERN[0].to_bytes(4, "big"):
            return
        self.take(int.from_bytes(frame[8:12], "big"), frame[12:], now)

    def take(self, token: int, data: bytes, now: float) -> None:
        """Note a frame of one of the two senders."""
        self.note(token, BODY.unpack_from(data)[0], now)

    def close(self) -> None:
        """Close the link."""
        self.end.close()


@dataclass
class Outcome:
    """The effect of one fault, in frames and milliseconds."""

    fault: str
    sent: int = 0
    lost: int = 0
    doubled: int = 0
    remembered: int = 0
    strays: int = 0
    wait_ms: float = 0.0
    note: str = ""
    missing: list[str] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)


Direction = tuple[Notes, Notes, int, int]
"""Sender, receiver, the first number, and the number after the last."""


@dataclass
class Load:
    """The load: both stations send at a rate until `stop`."""

    near: Notes
    far: Notes
    rate: float
    _running: bool = True
    _task: "asyncio.Task[None] | None" = field(default=None)
    _accounts: "list[tuple[Outcome, tuple[Direction, Direction]]]" = field(default_factory=list)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        next_s = loop.time()
        while self._running:
            self.near.say()
            self.far.say()
            next_s = max(next_s + 1 / self.rate, loop.time() - 0.1)
            await asyncio.sleep(max(0.0, next_s - loop.time()))

    async def stop(self) -> None:
        self._running = False
        if self._task is not None:
            await self._task

    def mark(self) -> tuple[int, int, int]:
        return len(self.near.sent), len(self.far.sent), self.near.remembered + self.far.remembered

    async def account(self, fault: str, marks: tuple[int, int, int], over_s: float) -> Outcome:
        """Count the frames since `marks`, once all have arrived or the time to catch up is over.

        The wait is the longest of a frame that was sent before `over_s`. `recount` counts duplicates again
        at the end, because a gateway that was frozen sends late.
        """
        ends = len(self.near.sent), len(self.far.sent)
        ways = ((self.near, self.far, marks[0], ends[0]), (self.far, self.near, marks[1], ends[1]))
        complete = lambda: all(n in b.heard for _, b, first, last in ways for n in range(first, last))  # noqa: E731
        with contextlib.suppress(TimeoutError):
            await until(complete, CATCH_UP_S)
        outcome = Outcome(fault)
        self._accounts.append((outcome, ways))
        for source, sink, first, last in ways:
            for number in range(first, last):
                times = sink.heard.get(number, [])
                outcome.sent += 1
                outcome.lost += not times
                if not times:
                    at_ms = 1000 * (source.sent[number] - source.sent[first])
                    outcome.missing.append(f"{source.token}:{number} at {at_ms:.0f} ms")
                if times and source.sent[number] <= over_s:
                    outcome.wait_ms = max(outcome.wait_ms, 1000 * (times[0] - source.sent[number]))
        outcome.remembered = self.near.remembered + self.far.remembered - marks[2]
        self.recount()
        return outcome

    def recount(self) -> None:
        """Count the duplicates and echoes so far, by the fault during which they were sent."""
        for outcome, ways in self._accounts:
            outcome.doubled = outcome.strays = 0
            outcome.copies = []
            for source, sink, first, last in ways:
                for number in range(first, last):
                    first_s, *again = sink.heard.get(number, [0.0])
                    outcome.doubled += len(again)
                    outcome.strays += source.strays.get(number, 0)
                    late = (f"{source.token}:{number} after {1000 * (at - first_s):.0f} ms" for at in again)
                    outcome.copies += late


class Trial:
    """A rig under load, and the faults to try on it."""

    def __init__(self, rig: Rig, load: Load, chance: random.Random) -> None:
        self.rig, self.load, self.chance = rig, load, chance
        self.over_s = inf  # time of the takeover; later waits do not count: restarts slow the machine
        self._acts: dict[str, Callable[[Program, Program], Awaitable[None]]] = {
            "stop": self._stop,
            "kill": self._kill,
            "freeze": self._freeze,
            "link down": self._link_down,
            "broker down": self._broker_down,
            "all brokers down": self._all_brokers_down,
            "broker and bridge": self._broker_and_bridge,
            "partition": self._partition,
        }

    async def run(self, fault: str) -> Outcome:
        """Cause a fault at a random moment, undo it, and account for every frame since just before."""
        rig = self.rig
        await self._calm(fault)
        marks = self.load.mark()
        active = rig.active()
        assert active is not None
        other = rig.other(active)
        note, self.over_s = "", inf
        try:
            await self._acts[fault](active, other)
        except TimeoutError as error:
            note = str(error)
        outcome = await self.load.account(fault, marks, self.over_s)
        outcome.note = note
        return outcome

    async def _calm(self, fault: str) -> None:
        """Wait until one gateway forwards and the other is ready, and still are after a random pause."""

        def calm() -> bool:
            return self.rig.active() is not None and self.rig.standby_ready()

        while True:
            await until(calm, what=f"calm before {fault}")
            await asyncio.sleep(self.chance.uniform(0.05, 0.3))
            if calm():
                return

    async def _taken_over(self, other: Program, before: int) -> None:
        def forwards() -> bool:
            return other.takeovers > before or other.state in ("active", "orphan")

        await until(forwards, 10, f"takeover by {other.gateway}")
        self.over_s = asyncio.get_running_loop().time()

    async def _stop(self, active: Program, other: Program) -> None:
        before = other.takeovers
        active.signal(signal.SIGTERM)
        await self._taken_over(other, before)
        await active.stop()
        await active.start()

    async def _kill(self, active: Program, other: Program) -> None:
        before = other.takeovers
        await active.kill()
        await self._taken_over(other, before)
        await active.start()

    async def _freeze(self, active: Program, other: Program) -> None:
        before = other.takeovers
        active.signal(signal.SIGSTOP)
        try:
            await self._taken_over(other, before)
            await asyncio.sleep(self.chance.uniform(0.1, 0.5))
        finally:
            active.signal(signal.SIGCONT)
        await until(lambda: active.state in ("standby", "fenced"), 10, "end of the frozen one's lease")

    async def _link_down(self, active: Program, other: Program) -> None:
        before = other.takeovers
        relay = self.rig.links[active.gateway]
        relay.cut()
        try:
            await self._taken_over(other, before)
            await asyncio.sleep(self.chance.uniform(0.1, 0.4))
        finally:
            await relay.open()

    async def _broker_down(self, active: Program, other: Program) -> None:
        name = self.chance.choice(("br-1", "br-2"))
        await self.rig.kill_broker(name)
        await asyncio.sleep(self.chance.uniform(0.3, 0.6))
        await self.rig.start_broker(name)
        await asyncio.sleep(0.5)

    async def _all_brokers_down(self, active: Program, other: Program) -> None:
        await asyncio.gather(*(self.rig.kill_broker(name) for name in ("br-1", "br-2")))
        await asyncio.sleep(self.chance.uniform(0.5, 1.0))
        await asyncio.gather(*(self.rig.start_broker(name) for name in ("br-1", "br-2")))
        await asyncio.sleep(0.7)

    async def _broker_and_bridge(self, active: Program, other: Program) -> None:
        before, name = other.takeovers, self.chance.choice(("br-1", "br-2"))
        await asyncio.gather(self.rig.kill_broker(name), active.kill())
        await self._taken_over(other, before)
        await asyncio.gather(self.rig.start_broker(name), active.start())

    async def _partition(self, active: Program, other: Program) -> None:
        before, relays = other.takeovers, self.rig.broker_relays[active.gateway]
        for relay in relays:
            relay.stall()
        try:
            await self._taken_over(other, before)
            await asyncio.sleep(self.chance.uniform(0.1, 0.5))
        finally:
            for relay in relays:
                relay.heal()


def far_link(rig: Rig) -> Link:
    if rig.line is not None:
        return UartLink(Uart(port=str(rig.line.paths[2]), baud=921600, exclusive=False))
    options = {"port": rig.can_port, "hop_limit": 0}
    can = Can(interface="udp_multicast", channel="239.74.163.58", node=99, fd=True, options=options)
    return CanLink(can)


async def trial(
    medium: str,
    envelopes: bool,
    faults: Sequence[str],
    seed: int,
    rate: float,
    say: Callable[[str], None],
    lease_ms: int = LEASE_MS,
) -> list[Outcome]:
    """Run `faults` one after another on one rig."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as directory:
        rig = Rig(Path(directory), medium, envelopes, lease_ms)
        near = far = None
        try:
            await rig.open()
            near = Station(1, make_link(f"tcp://127.0.0.1:{rig.door}", "dial"), False)
            far = Station(2, far_link(rig), envelopes)
            await until(lambda: len(near.hub.pipes) == len(far.hub.pipes) == 2, what="the stations' links")
            load = Load(near, far, rate)
            load.start()
            await until(lambda: len(near.heard) > 20 and len(far.heard) > 20, what="frames both ways")
            one = Trial(rig, load, random.Random(seed))
            for fault in faults:
                try:
                    outcomes.append(await one.run(fault))
                except TimeoutError:
                    say(latest_words(rig))
                    raise
                say(f"{title(medium, envelopes):24} {_brief(outcomes[-1])}")
                if outcomes[-1].lost:
                    say(latest_words(rig))
            await load.stop()
            load.recount()
            stats = far.hub.pipes[-1].stats
            say(f"{title(medium, envelopes)}: the far end dropped {stats.dropped}, refused {stats.rejected}")
        finally:
            for station in (near, far):
                if station is not None:
                    station.close()
            await rig.close()
    return outcomes


def latest_words(rig: Rig) -> str:
    """Return the last lines that each gateway has logged."""
    return "\n".join(line for name in ("gw-a", "gw-b") for line in (name, *rig.programs[name].said[-25:]))


def title(medium: str, envelopes: bool) -> str:
    return f"TCP to {medium.upper()}, " + ("envelopes" if envelopes else "plain")


def _brief(o: Outcome) -> str:
    extra = "".join(f", {word} {n}" for word, n in (("remembered", o.remembered), ("echoed", o.strays)) if n)
    counts = f"{o.fault:18} lost {o.lost}, doubled {o.doubled} of {o.sent}, {o.wait_ms:.0f} ms"
    return f"{counts}{extra} {o.note} {', '.join(o.missing[:4])}"


def percentile(values: list[float], part: float) -> float:
    """Return the nearest-rank percentile."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(part * len(ranked)))] if ranked else 0.0


def table(results: dict[str, list[Outcome]]) -> str:
    """Return a text table with a line for each setup and fault."""
    head = f"{'setup':22} {'fault':18} " + "   n   frames  lost twice  echo  p50 ms  p99 ms"
    lines = [head]
    for setup, outcomes in results.items():
        for fault in FAULTS:
            some = [outcome for outcome in outcomes if outcome.fault == fault]
            if some:
                waits = [outcome.wait_ms for outcome in some]
                lines.append(
                    f"{setup:22} {fault:18} {len(some):4} {sum(o.sent for o in some):8} "
                    f"{sum(o.lost for o in some):5} {sum(o.doubled for o in some):5} "
                    f"{sum(o.strays for o in some):5} "
                    f"{percentile(waits, 0.5):7.0f} {percentile(waits, 0.99):7.0f}"
                )
    return "\n".join(lines)


def plan(count: int, seed: int, kinds: Sequence[str] = FAULTS) -> list[tuple[str, bool, list[str]]]:
    """Return the faults in a seeded order, spread evenly over the setups."""
    chance = random.Random(seed)
    faults = [kinds[number % len(kinds)] for number in range(count)]
    chance.shuffle(faults)
    share = -(-count // len(SETUPS))
    return [(*setup, faults[n * share : (n + 1) * share]) for n, setup in enumerate(SETUPS)]


async def run(options: argparse.Namespace) -> dict[str, list[Outcome]]:
    results: dict[str, list[Outcome]] = {}
    for number, (medium, envelopes, faults) in enumerate(
        plan(options.count, options.seed, options.fault or FAULTS)
    ):
        if faults and (
            not options.setup or f"{medium}-{'envelopes' if envelopes else 'plain'}" in options.setup
        ):
            say = (
                (lambda line: print(line, file=sys.stderr, flush=True))
                if options.verbose
                else (lambda line: None)
            )
            results[title(medium, envelopes)] = await trial(
                medium, envelopes, faults, options.seed + number, options.rate, say, options.lease_ms
            )
    return results


def main() -> int:
    parser = Command("benchmarks.takeovers", __doc__)
    parser.add_argument("--count", type=int, default=200, help="number of faults in all (200)")
    parser.add_seed()
    parser.add_argument("--rate", type=float, default=200, help="frames a second each way (200)")
    parser.add_argument("--lease-ms", type=int, default=LEASE_MS, help=f"duration of a lease ({LEASE_MS})")
    parser.add_argument("--short", action="store_true", help="only eight faults")
    parser.add_argument(
        "--setup",
        action="append",
        default=[],
        help="only this: can-envelopes, can-plain, uart-envelopes, uart-plain",
    )
    parser.add_argument("--fault", action="append", default=[], choices=FAULTS, help="only this (repeatable)")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    parser.add_argument("--verbose", action="store_true", help="print a line for each fault")
    options = parser.parse_args()
    if options.short:
        options.count = 8
    results = asyncio.run(run(options))
    print(
        json.dumps({s: [asdict(o) for o in r] for s, r in results.items()})
        if options.json
        else table(results)
    )
    bad = sum(o.lost + o.doubled + o.strays + bool(o.note) for outcomes in results.values() for o in outcomes)
    return 1 if bad else 0


if __name__ == "__main__":
    run_as_command(main)
