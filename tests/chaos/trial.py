"""A run of one seed: calm, a storm of faults, and calm again; then everything must cross as before."""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any

from bridges.rules import LIFE_S
from tests.chaos import laws
from tests.chaos.clock import begin, clock
from tests.chaos.faults import STORM_S, Fault, Trouble
from tests.chaos.plant import Plant
from tests.chaos.stations import Key, Station, stations

CALM_S = 20.0
"""Time from the start until all crosses."""
BOUND_S = 45.0
"""Time from the end of the last fault until all crosses again: no silence is longer."""
_ROUND_S, _LAST_S = 1.0, 0.5  # of a round of probes, and for the last of them to arrive
_PAUSE_S = 0.3  # between two frames of one station, on average
_STEP_S = 0.25
_FEW = 12
_HELD_S = LIFE_S / 2  # one fault after another may add up


@dataclass
class Verdict:
    """What a run showed. `digest` is the same for the same seed; times are virtual."""

    seed: int
    failures: list[str] = field(default_factory=list)
    frames: int = 0
    heard: int = 0
    silent_s: float = 0.0
    restarts: int = 0
    digest: str = ""

    def told(self) -> dict[str, Any]:
        return dict(vars(self))


class _Errors(logging.Handler):
    """Keeps the lines that are logged as errors: none is expected."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        self.lines.append(f"{text}: {error!r}" if error else text)


class Trial:
    """A plant under a load, with stations at all ends. It looks at the laws each `step_s`.

    Each station waits `pause_s` between two frames, on average.
    """

    def __init__(
        self, seed: int, faults: Sequence[Fault], pause_s: float = _PAUSE_S, step_s: float = _STEP_S
    ) -> None:
        begin(seed)
        self.faults, self._pause_s, self._step_s = faults, pause_s, step_s
        self.chance = Random(f"load {seed}")
        self.plant = Plant()
        self.dues = {name: laws.Dues() for name in self.plant.programs}
        self.trouble = Trouble(self.plant)
        self.happened: list[Fault] = []
        self.stations = stations()
        self.verdict = Verdict(seed)
        self.errors = _Errors()
        self.said: list[Key] = []
        self.apps = self.plant.apps.program("apps")
        self.plant.scheduler.add(self.apps)

    def run(self) -> Verdict:
        """Run it all. A law that is broken is a line in the verdict."""
        logging.getLogger().addHandler(self.errors)
        try:
            with self.plant.network.installed():
                self._run()
                self.finish()
        finally:
            logging.getLogger().removeHandler(self.errors)
        return self.verdict

    def start(self) -> None:
        """Start all programs and stations, and the load."""
        for program in self.plant.programs.values():
            program.start()
        self.apps.call_soon(self._open)

    def _open(self) -> None:
        for station in self.stations.values():
            station.open(self.apps)
            self._say_next(station)

    def _say_next(self, station: Station) -> None:
        rest = self.chance.randbytes(self.chance.randrange(160))
        self.said.append(station.say(self.chance.choice(station.words), rest))
        self.verdict.frames += 1
        self.apps.call_later(self.chance.uniform(0.0, 2 * self._pause_s), self._say_next, station)

    def _run(self) -> None:
        self.start()
        calm_s = self.until_calm(CALM_S)
        if calm_s is None:
            return self._fail("silence: the plant did not start")
        self.storm(self.faults)
        silent_s = self.until_calm(BOUND_S)
        self.verdict.silent_s = BOUND_S if silent_s is None else silent_s
        if silent_s is None:
            return self._fail(f"silence: {self._round()} {BOUND_S:g} s after the last fault")
        self._after()

    def _round(self) -> str:
        found = self.round()
        return f"{found.lost} lost and {found.doubled} doubled of {found.due}, as {found.first},"

    def until_calm(self, bound_s: float) -> float | None:
        """Return how long it took until all crossed exactly once, for a whole round; None if too long."""
        began_s = clock.now_s
        while clock.now_s - began_s < bound_s:
            at_s = clock.now_s - began_s
            if self.round().perfect:
                return at_s
        return None

    def round(self) -> laws.Crossing:
        """Run for a round; return how the frames of it crossed."""
        self.said.clear()
        self.go(_ROUND_S)
        said = list(self.said)
        self.go(_LAST_S)
        return self.crossed(said)

    def crossed(self, said: Sequence[Key]) -> laws.Crossing:
        """Return how frames have crossed so far."""
        return laws.crossing(self.stations, said)

    def forget(self, age_s: float) -> None:
        """Forget frames that are older, once nothing has come twice."""
        self._fail(*self._once())
        for station in self.stations.values():
            station.forget(clock.now_s - age_s)

    def _once(self) -> list[str]:
        heard, within_s = [*self.stations.values()], LIFE_S if self._holds_can() else inf
        starts_s = [at_s for program in self.plant.programs.values() for at_s in program.starts_s[1:]]
        return [*laws.integrity(heard), *laws.once(heard, ("motor", "panel"), within_s, starts_s)]

    def _holds_can(self) -> bool:
        """Tell whether the driver of a CAN bus keeps frames for long: nobody can take them back."""
        long = [fault for fault in self.happened if fault.length_s > _HELD_S]
        return any((one.kind, one.target[-3:]) in (("stuck", "can"), ("clog", "can")) for one in long)

    def go(self, time_s: float) -> None:
        """Let time pass, and look at the laws that always hold."""
        until_s = clock.now_s + time_s
        while clock.now_s < until_s:
            self.plant.scheduler.run(min(until_s, clock.now_s + self._step_s))
            self._look()

    def storm(self, faults: Sequence[Fault]) -> None:
        """Let faults happen, until the last of them has ended."""
        self.happened += faults
        began_s = clock.now_s
        for at_s, act, fault in _acts(faults):
            self.go(max(0.0, began_s + at_s - clock.now_s))
            (self.trouble.begin if act else self.trouble.end)(fault)
            self._look()
        self.go(max(0.0, began_s + STORM_S - clock.now_s))

    def _look(self) -> None:
        for name, program in self.plant.programs.items():
            self._fail(*laws.ledgers(program), *self.dues[name].broken(program), *laws.bounds(program))

    def _after(self) -> None:
        for _ in range(2):
            found = self.round()
            if not found.perfect:
                self._fail(
                    f"relapse: {found.lost} lost, {found.doubled} doubled of {found.due}, as {found.first}"
                )
        if [*laws.one_forwards(self.plant)]:
            self.go(_LAST_S)  # one may just take over from the other
        self._fail(*laws.one_forwards(self.plant))

    def finish(self) -> None:
        """Close everything, and look at the laws of the whole run."""
        for station in self.stations.values():
            station.close()
        for program in self.plant.programs.values():
            self._fail(*laws.calm(program))
            self.verdict.restarts += program.restarts
        heard = self.stations.values()
        self._fail(*self._once())
        self._fail(*(f"exception: {problem}" for problem in (*self.apps.problems, *self.errors.lines)))
        self.verdict.heard = sum(len(times) for one in heard for times in one.heard.values())
        digests = b"".join(one.digest.digest() for one in heard)
        self.verdict.digest = hashlib.sha256(digests).hexdigest()[:16]
        self.plant.close()

    def _fail(self, *lines: str) -> None:
        new = [line for line in lines if _kind(line) not in map(_kind, self.verdict.failures)]
        self.verdict.failures += new[: max(0, _FEW - len(self.verdict.failures))]


def _acts(faults: Sequence[Fault]) -> list[tuple[float, bool, Fault]]:
    """Return what begins (True) and ends (False) when, in order."""
    begins = [(fault.at_s, True, fault) for fault in faults]
    ends = [(fault.at_s + fault.length_s, False, fault) for fault in faults]
    return sorted(begins + ends, key=lambda act: act[0])


def _kind(line: str) -> str:
    return line.partition(":")[0]


def run(seed: int, faults: Sequence[Fault]) -> Verdict:
    """Run some faults on a new plant."""
    return Trial(seed, faults).run()


def kinds(verdict: Verdict) -> Iterator[str]:
    """Return the kinds of the failures of a run."""
    return map(_kind, verdict.failures)
