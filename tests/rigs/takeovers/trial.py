"""Faults, one after another, on a rig under load."""

import asyncio
import random
import signal
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from pathlib import Path

from bus.leases.wire import LEASE_MS
from tests.helpers.peers import until
from tests.rigs.takeovers.faults import Faults
from tests.rigs.takeovers.load import Load, Outcome
from tests.rigs.takeovers.rig import FORWARDING, PATIENCE_S, PROTOCOLS, Program, Rig
from tests.rigs.takeovers.stations import far_station, near_station

_AFTER_S = 0.3
"""The time after a fault in which a frame may be late for it."""


class Trial(Faults[[Program, Program], Awaitable[None]]):
    """A rig under load, and the faults to try on it."""

    def __init__(self, rig: Rig, load: Load, chance: random.Random) -> None:
        self.rig, self.load, self.chance = rig, load, chance
        self.over_s = inf  # time of the takeover; later waits do not count: restarts slow the machine

    async def run(self, fault: str) -> Outcome:
        """Cause a fault at a random moment, undo it, and account for every frame since just before."""
        rig = self.rig
        await self._calm(fault)
        marks, drops = self.load.mark(), self._drops()
        active = rig.active()
        assert active is not None
        other = rig.other(active)
        note, self.over_s, begun_s = "", inf, asyncio.get_running_loop().time()
        try:
            await self.acts[fault](active, other)
        except TimeoutError as error:
            note = str(error)
        outcome = await self.load.account(fault, marks, self.over_s, begun_s)
        outcome.note, outcome.counted = note, dict(self._drops() - drops)
        return outcome

    async def rest(self, quiet_s: float) -> Outcome:
        """Let quiet time pass, and account for its frames as for those of a fault."""
        marks, drops = self.load.mark(), self._drops()
        await asyncio.sleep(quiet_s)
        outcome = await self.load.account("quiet", marks, asyncio.get_running_loop().time())
        outcome.counted = dict(self._drops() - drops)
        return outcome

    def _drops(self) -> Counter[str]:
        return self.rig.drops() + self.load.near.drops() + self.load.far.drops()

    async def _calm(self, fault: str) -> None:
        """Wait until a fault may come, and still may after a random pause."""
        while True:
            await until(self.is_calm, PATIENCE_S, f"calm before {fault}")
            await asyncio.sleep(self.chance.uniform(0.05, 0.3))
            if self.is_calm():
                return

    def is_calm(self) -> bool:
        """Tell whether one gateway forwards, the other is ready and both reach all brokers."""
        return self.rig.active() is not None and self.rig.standby_ready() and self.rig.brokers_heard()

    async def _taken_over(self, other: Program, before: int) -> None:
        def forwards() -> bool:
            return other.takeovers > before or other.state in FORWARDING

        await until(forwards, 10, f"takeover by {other.gateway}")
        if other.state == "parallel":  # it forwarded before the fault, too
            await asyncio.sleep(_AFTER_S)
        self.over_s = asyncio.get_running_loop().time()

    async def stop(self, active: Program, other: Program) -> None:
        before = other.takeovers
        active.signal(signal.SIGTERM)
        await self._taken_over(other, before)
        await active.stop()
        await active.start()

    async def kill(self, active: Program, other: Program) -> None:
        before = other.takeovers
        await active.kill()
        await self._taken_over(other, before)
        await active.start()

    async def freeze(self, active: Program, other: Program) -> None:
        before = other.takeovers
        active.signal(signal.SIGSTOP)
        try:
            await self._taken_over(other, before)
            await asyncio.sleep(self.chance.uniform(0.1, 0.5))
        finally:
            active.signal(signal.SIGCONT)
        await until(
            lambda: active.state in ("standby", "fenced", "parallel"), 10, "end of the frozen one's lease"
        )

    async def link_down(self, active: Program, other: Program) -> None:
        before = other.takeovers
        relay = self.rig.links[active.gateway]
        relay.cut()
        try:
            await self._taken_over(other, before)
            await asyncio.sleep(self.chance.uniform(0.1, 0.4))
        finally:
            await relay.open()

    async def broker_down(self, active: Program, other: Program) -> None:
        name = self.chance.choice(("br-1", "br-2"))
        await self.rig.kill_broker(name)
        await asyncio.sleep(self.chance.uniform(0.3, 0.6))
        await self.rig.start_broker(name)
        await asyncio.sleep(0.5)

    async def all_brokers_down(self, active: Program, other: Program) -> None:
        await asyncio.gather(*(self.rig.kill_broker(name) for name in ("br-1", "br-2")))
        await asyncio.sleep(self.chance.uniform(0.5, 1.0))
        await asyncio.gather(*(self.rig.start_broker(name) for name in ("br-1", "br-2")))
        await asyncio.sleep(0.7)

    async def broker_and_bridge(self, active: Program, other: Program) -> None:
        before, name = other.takeovers, self.chance.choice(("br-1", "br-2"))
        await asyncio.gather(self.rig.kill_broker(name), active.kill())
        await self._taken_over(other, before)
        await asyncio.gather(self.rig.start_broker(name), active.start())

    async def partition(self, active: Program, other: Program) -> None:
        before, relays = other.takeovers, self.rig.vital_relays(active.gateway)
        for relay in relays:
            relay.stall()
        try:
            await self._taken_over(other, before)
            await asyncio.sleep(self.chance.uniform(0.1, 0.5))
        finally:
            for relay in relays:
                relay.heal()


async def trial(
    medium: str,
    envelopes: bool,
    faults: Sequence[str],
    seed: int,
    rate: float,
    say: Callable[[str], None],
    lease_ms: int | None = LEASE_MS,
    parallel: bool = False,
    outcomes: list[Outcome] | None = None,
    settled: bool = False,
) -> list[Outcome]:
    """Run `faults` one after another on one rig. `parallel`: both gateways forward at once. `settled`: the
    first fault waits until the gateways have settled.

    Without `lease_ms` all programs have real-time priority, and the leases that they keep so. `outcomes` gets
    each outcome at once, so they are not lost with a fault that raises `TimeoutError`.
    """
    name = title(medium, envelopes, parallel)
    outcomes = [] if outcomes is None else outcomes
    with tempfile.TemporaryDirectory() as directory:
        rig = Rig(Path(directory), medium, envelopes, lease_ms, parallel)
        near = far = None
        try:
            await rig.open()
            near, far = near_station(rig), far_station(rig)
            await until(lambda: len(near.hub.pipes) == len(far.hub.pipes) == 2, what="the stations' links")
            load = Load(near, far, rate)
            load.start()
            await until(lambda: len(near.heard) > 20 and len(far.heard) > 20, what="frames both ways")
            if settled:
                await until(lambda: not rig.settling(), PATIENCE_S, "settled gateways")
            one = Trial(rig, load, random.Random(seed))
            for fault in faults:
                try:
                    outcomes.append(await one.run(fault))
                except TimeoutError:
                    say(latest_words(rig))
                    raise
                say(f"{name:24} {_brief(outcomes[-1])}")
                if outcomes[-1].lost:
                    say(latest_words(rig))
            await load.stop()
            load.recount()
            stats = far.hub.pipes[-1].stats
            say(f"{name}: the far end dropped {stats.dropped}, refused {stats.rejected}")
        finally:
            for station in (near, far):
                if station is not None:
                    station.close()
            await rig.close()
    return outcomes


def latest_words(rig: Rig) -> str:
    """Return the last lines that each gateway has logged."""
    return "\n".join(line for name in ("gw-a", "gw-b") for line in (name, *rig.programs[name].said[-25:]))


def title(medium: str, envelopes: bool, parallel: bool = False) -> str:
    if medium in PROTOCOLS:
        return f"TCP to {medium}"
    return f"TCP to {medium.upper()}, " + ("parallel" if parallel else "envelopes" if envelopes else "plain")


def _brief(o: Outcome) -> str:
    others = (
        ("remembered", o.remembered),
        ("echoed", o.strays),
        ("given up", o.given_up),
        ("lost before the fault", o.between),
    )
    extra = "".join(f", {word} {n}" for word, n in others if n)
    counts = f"{o.fault:18} lost {o.lost}, doubled {o.doubled} of {o.sent}, {o.wait_ms:.0f} ms"
    return f"{counts}{extra} {o.note} {', '.join(o.missing[:4])}{told(o)}"


def told(outcome: Outcome) -> str:
    """Return what explains losses: the gateways' own counters, and how long the rig stood; else ""."""
    if not outcome.lost:
        return ""
    counted = ", ".join(f"{n} {reason}" for reason, n in outcome.counted.items()) or "nothing"
    return (
        f"; counted: {counted}; unexplained: {outcome.unexplained}; the rig stood {outcome.stood_ms:.0f} ms"
    )
