"""A candidacy on a loop whose time the tests control, and a gate that notes what it is told."""

from collections.abc import Callable, Sequence
from operator import itemgetter

from bus.leases.candidacy import Candidacy
from bus.leases.candidate import Candidate
from bus.leases.wire import Grant
from bus.machine.wake_hook import WakefulLoop

Due = tuple[float, Callable[[], None]]


class Timer:
    def __init__(self, due: list[Due], call: Due) -> None:
        self._due, self._call = due, call

    def cancel(self) -> None:
        if self._call in self._due:
            self._due.remove(self._call)


class Loop:
    """An event loop, as far as a candidacy without brokers uses it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.due: list[Due] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        self.due.append((self.now + delay_s, call))
        return Timer(self.due, self.due[-1])

    def run(self, seconds: float) -> None:
        end_s = self.now + seconds
        while self.due and (first := min(self.due, key=itemgetter(0)))[0] <= end_s:
            self.due.remove(first)
            at_s, call = first
            self.now = max(self.now, at_s)
            call()
        self.now = end_s


class Told:
    """What a gate is told of a time in which nothing was heard."""

    forwarding = False

    def __init__(self) -> None:
        self.before_s: list[float] = []

    def blind(self, before_s: float) -> None:
        self.before_s.append(before_s)

    def noted(self) -> dict[str, int]:
        return {}

    def lag_s(self) -> float:
        return 0.0

    def pause(self) -> None:
        pass

    def purge(self) -> None:
        pass

    def resume(self, since_s: float | None = None, again: bool = False) -> int:
        return 0

    def concede(self) -> None:
        pass

    def queued(self) -> int:
        return 0


def ignore(*_: object, **__: object) -> None:
    """Record no event."""


class Behind(WakefulLoop):
    """A loop that says when all is read as the test has it; the rest is `Loop`."""

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.asked = Loop(), list[Callable[[], object]]()

    def time(self) -> float:
        return self.clock.now

    def call_later(self, delay: float, callback: Callable[..., None], *_: object, **__: object) -> Timer:  # type: ignore[override]
        return self.clock.call_later(delay, callback)

    def call_when_all_read(self, function: Callable[[], object]) -> None:
        self.asked.append(function)

    def read_all(self) -> None:
        asked, self.asked = self.asked, []
        for call in asked:
            call()


class Standby:
    """A candidate that has heard that another, of id `holder`, holds the lease; or nobody."""

    def __init__(self, holder: int = 9, behind: Behind | None = None) -> None:
        self.loop, self.gate = Loop() if behind is None else behind.clock, Told()
        self.candidate = Candidate((1,), "x", 5, 1, 1)
        self.links_down: Callable[[], Sequence[str]] = lambda: ()
        self.told: list[tuple[str, int]] = []
        self.freed = 0
        self.candidacy = Candidacy(
            self.candidate, [], self.gate, lambda: self.links_down(), self._note, freed=self._count
        )
        self.candidacy.open(self.loop if behind is None else behind)  # type: ignore[arg-type]
        self.candidate.reached(0, "up", self.loop.now)
        self.candidate.heard(
            0, Grant((1,), "x", acting=holder > 0, holder=holder, lease_ms=250), self.loop.now
        )
        self.loop.run(0.5)

    def _note(self, kind: str, source: str, cause: str, level: int, **counts: int) -> None:
        self.told.append((cause, level))

    def _count(self) -> None:
        self.freed += 1

    def hear(self, holder: int) -> None:
        """Hear from the broker who holds the lease; 0 is nobody."""
        grant = Grant((1,), "x", granted=holder == 5, acting=holder == 9, holder=holder, lease_ms=250)
        self.candidate.heard(0, grant, self.loop.now)
        self.candidacy.judge()
