"""Frames both ways through two gateways with a TMQ side: first without a fault, then through faults."""

import random
import tempfile
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

from bus.hub import Link
from bus.leases.wire import LEASE_MS
from bus.transports.links import make_link
from tests.helpers.peers import until
from tests.rigs.takeovers.load import Load, Outcome
from tests.rigs.takeovers.stations import far_link
from tests.rigs.takeovers.trial import Trial, told
from tests.rigs.tmq.rig import Client, Field, TmqRig

NONE = "none"


class Result(NamedTuple):
    """The outcomes on one rig, and what must be said with them."""

    outcomes: list[Outcome]
    failed: int
    blocked_ms: float
    again: int
    trouble: list[str]
    ledgers: list[str]


def title(medium: str, envelopes: bool, filtered: bool) -> str:
    return f"{medium}{', envelopes' if envelopes else ''}{'' if filtered else ', everything'}"


def end_link(rig: TmqRig) -> Link:
    return make_link(f"tcp://127.0.0.1:{rig.bus}", "dial") if rig.medium == "bus" else far_link(rig)


class TmqTrial(Trial):
    """Faults on a rig with a client of 2015, which come once that knows both gateways."""

    def __init__(self, rig: TmqRig, load: Load, chance: random.Random, client: Client) -> None:
        super().__init__(rig, load, chance)
        self._client = client

    def is_calm(self) -> bool:
        return super().is_calm() and self._client.is_heard_by_all


async def quiet(load: Load, frames: int) -> Outcome:
    """Let `frames` frames go each way without a fault."""
    marks = load.mark()
    seconds = 10 + 2 * frames / load.rate
    await until(lambda: len(load.near.sent) - marks[0] >= frames, seconds, f"{frames} frames")
    return await load.account(NONE, marks, inf)


async def trial(
    setup: tuple[str, bool, bool],
    frames: int,
    faults: Sequence[str],
    seed: int,
    rate: float,
    say: Callable[[str], None],
    lease_ms: int = LEASE_MS,
    reference: str = "",
) -> Result:
    """Run `frames` each way without a fault, then `faults` one after another, on one rig.

    `reference`: the directory of a clone of the reference; without one, clients of the tests stand for it.
    """
    with tempfile.TemporaryDirectory() as directory:
        rig = TmqRig(Path(directory), *setup, lease_ms)
        near, far = Client(rig.brokers[0], reference), None
        outcomes: list[Outcome] = []
        try:
            await rig.open()
            await near.start()
            far = Field(end_link(rig), rig.envelopes)
            await until(lambda: far is not None and len(far.hub.pipes) == 2, what="the station's link")
            load = Load(near, far, rate)
            load.start()
            await until(lambda: len(near.heard) > 20 and len(far.heard) > 20, what="frames both ways")
            if frames:
                outcomes.append(await quiet(load, frames))
                _tell(rig, setup, say, outcomes[-1])
            one = TmqTrial(rig, load, random.Random(seed), near)
            for fault in faults:
                outcomes.append(await one.run(fault))
                _tell(rig, setup, say, outcomes[-1])
            await load.stop()
            load.recount()
            await near.stop()
        except TimeoutError:
            say("\n".join([*_latest_words(rig), *near.trouble]))
            raise
        finally:
            near.close()
            if far is not None:
                far.close()
            await rig.close()
        return Result(outcomes, near.failed, near.blocked_ms, far.again, near.trouble, _ledgers(rig))


def _tell(rig: TmqRig, setup: tuple[str, bool, bool], say: Callable[[str], None], outcome: Outcome) -> None:
    say(_brief(setup, outcome))
    if outcome.lost:
        say("\n".join(_latest_words(rig)))


def _latest_words(rig: TmqRig) -> list[str]:
    return [line for name, program in rig.programs.items() for line in (name, *program.said[-25:])]


def _ledgers(rig: TmqRig) -> list[str]:
    """Return the last lines of the two gateways."""
    found = []
    for name in rig.links:
        said = [line.partition(" ")[2] for line in rig.programs[name].said]
        starts = [n for n, line in enumerate(said) if line.startswith("ledger of")]
        found += [f"{name}: {line}" for line in said[starts[-1] :]] if starts else [f"{name}: no ledger"]
    return found


def _brief(setup: tuple[str, bool, bool], o: Outcome) -> str:
    counts = f"lost {o.lost}, doubled {o.doubled}, echoed {o.strays} of {o.sent}, {o.wait_ms:.0f} ms"
    return f"{title(*setup):24} {o.fault:18} {counts} {o.note} {', '.join(o.missing[:4])}{told(o)}"
