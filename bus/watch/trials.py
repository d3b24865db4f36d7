"""The trial of a message that seems to go round a ring: nothing is lost, and no ring is taken on suspicion.

A ring, a dialogue of equal messages and several senders of equal readings look alike while everything is
forwarded. So what comes by the suspect's pipes is held for a moment, in order:

1. *drain*. What still comes after a lap came from a sender of its own. In a ring and in a dialogue it ends.
2. *release*. One copy goes on. In a ring it comes back by the pipe that brought it before; in a dialogue, the
   answer comes by another pipe.
3. *ask*. Only if it looks like a ring, canaries go out. A canary that comes back by another pipe proves it.

Then all goes on in its order. Pure: time and chance are arguments.
"""

from collections.abc import Callable, Mapping
from typing import Generic, Literal, NamedTuple, TypeVar

LAP_MIN_S, LAP_MAX_S = 0.02, 0.25  # a lap of a ring, as the time in which copies came tells
HOLD_S = 1.0  # that messages may be held, at most
HELD_BYTES = 4 << 20  # that may be held, at most
ASK_S = 0.06  # that a canary holds them back, at least
SURE = 2  # releases that agree
STRICT = 4  # where canaries are to be avoided
TURNS = 6  # releases in one trial
EXPECTED = 1.5  # copies of a way in half the time for a lap; if fewer are, it tells nothing that none comes
MANY = 8  # copies that wait: a dialogue has few on their way
FLOOD = 4  # so many times the copies that were seen cannot be on their way
STORM = 1000  # copies a second that come without our help: senders, or a ring that needs us not
ASKED = 2  # ways, of those by which a storm comes

Way = TypeVar("Way")
Verdict = Literal["legal", "unknown", "proved"]


class Release(NamedTuple, Generic[Way]):
    """Let go on what a way brought: up to the first copy of the suspect, or `everything`."""

    way: Way
    everything: bool


class Ask(NamedTuple, Generic[Way]):
    """Send a canary by each of these ways."""

    ways: tuple[Way, ...]


Step = Release[Way] | Ask[Way] | Verdict


class Rules(NamedTuple, Generic[Way]):
    """The rules of one trial.

    `copies` were seen within `span_s`; `rates` are those of each way a second. `strict`: ask only on strong
    signs, as who talks here talks with one other. `again`: it was acquitted before, so ask if nothing can be
    told by holding. `is_one_way`: all copies came by one way. `patience` stretches the time for a lap, by
    chance: of two hubs that let go at once, each takes the copy of the other for an answer. `tried`: it was
    tried before, when it came less often. `is_mesh`: copies came by three ways or more: each lap makes more.
    """

    copies: int
    span_s: float
    rates: Mapping[Way, float]
    strict: bool = False
    again: bool = False
    is_one_way: bool = False
    patience: float = 1.0
    tried: bool = False
    is_mesh: bool = False


class Trial(Generic[Way]):
    """One trial. Call `heard` for each arrival of the suspect, `next` after that and at `due_s`.

    `held` counts the suspect's copies that wait, by way. Messages of these ways are to be held.
    `choose(ways)` returns one of several ways by chance.
    """

    def __init__(self, rules: Rules[Way], now: float, choose: Callable[[list[Way]], Way]) -> None:
        self._rules, self._choose = rules, choose
        self._lap_s = min(max(2 * rules.span_s, LAP_MIN_S) * rules.patience, LAP_MAX_S)
        self.held: dict[Way, int] = {}
        self._noise: dict[Way, int] = {}
        self._began_s = now
        self._end_s = now + HOLD_S
        self._is_slow = max(rules.rates.values()) * self._lap_s / 2 < EXPECTED
        self._drained_s = now + self._lap_s / 2
        self.due_s = now if self._is_slow else now + self._lap_s
        self._released: Way | None = None
        self._everything = self._drained = self._yielded = self._doubts = self._others_ask = False
        self.asked = self._is_queue = self._is_mesh = self._is_few = False
        self._arrived = self._turns = self._rings = self._echoes = self._silences = 0
        self._verdict: Verdict | None = None

    def heard(self, way: Way, count: int, now: float) -> None:
        """Note that the suspect came by a way; it is held."""
        self.held[way] = self.held.get(way, 0) + count
        self._arrived += count
        if not self._drained:
            is_flood = self._arrived > FLOOD * self._rules.copies
            if now >= self._drained_s or is_flood:
                self._noise[way] = self._noise.get(way, 0) + count
            if is_flood:
                self.due_s = now
        elif self._released is not None and way not in self._noise:
            if way is self._released:
                self._rings += 1
            else:
                self._echoes += 1
            self._released, self.due_s = None, now

    def leave(self, way: Way) -> None:
        """Forget a way that has gone."""
        self.held.pop(way, None)
        self._noise.pop(way, None)
        if self._released is way:
            self._released = None

    def give_way(self, now: float) -> None:
        """Note that another hub asks: it will cut the ring, if there is one."""
        if not self._yielded:
            self._yielded, self.asked, self._others_ask = True, False, True
            self.due_s = min(now + max(ASK_S, self._lap_s), self._end_s)

    def overflow(self) -> None:
        """Note that no more can be held."""
        self._verdict = self._verdict or "unknown"

    def next(self, now: float) -> Step[Way] | None:
        """Return the next step, if one is due."""
        if self._verdict is not None:
            return self._verdict
        if now >= self._end_s:
            return self._end("legal" if self.asked and not self._is_open() else "unknown")
        if now < self.due_s:
            return None
        if self._yielded:
            self._yielded = False
            return self._doubt(now) if self._is_much() else self._end("unknown")
        if self.asked:
            return self._end("unknown" if self._is_open() else "legal")
        if not self._drained:
            return self._after_drain(now)
        return self._after_release(now)

    def _end(self, verdict: Verdict) -> Verdict:
        self._verdict = verdict
        return verdict

    def _quiet(self) -> list[Way]:
        return [way for way in self.held if way not in self._noise]

    def _after_drain(self, now: float) -> Step[Way] | None:
        self._drained = True
        quiet, is_crowd, is_one_way = len(self._quiet()), self._is_crowd(), self._rules.is_one_way
        self._is_mesh = is_crowd and self._rules.is_mesh
        self._is_queue = is_crowd and quiet == 1 and not (is_one_way or self._is_mesh)
        self._is_few = not (is_crowd or self._noise or is_one_way)
        if self._is_few and quiet == 1 and self._rules.strict and not self._rules.tried:
            return self._end("legal")  # as in a dialogue
        if quiet and not self._is_slow:
            return self._release(now)
        return self._unreleased(now)

    def _unreleased(self, now: float) -> Step[Way] | None:
        """Return the step where letting go tells nothing, as copies come all the same or seldom."""
        is_explained, rules = self._is_explained(now), self._rules
        is_odd = self._is_crowd() and not is_explained
        if rules.strict or not (is_odd or rules.again or self._is_slow or self._is_storm(now)):
            return self._end("legal" if is_explained else "unknown")
        return self._ask(tuple(sorted(rules.rates, key=rules.rates.__getitem__)[-ASKED:]), now)

    def _is_explained(self, now: float) -> bool:
        """Tell whether senders bring as many copies as were seen; hubs that let go bring few."""
        expected = sum(self._rules.rates.values()) * max(0.0, now - self._drained_s)
        return FLOOD * sum(self._noise.values()) >= expected if self._noise else not self._is_crowd()

    def _is_crowd(self) -> bool:
        """Tell whether more copies wait than a dialogue has on their way."""
        return sum(self.held.values()) >= MANY

    def _is_storm(self, now: float) -> bool:
        """Tell whether many copies a second came by several ways while nothing was let go."""
        time_s = now - self._drained_s if now > self._drained_s else now - self._began_s
        return len(self._noise) > 1 and sum(self._noise.values()) >= STORM * time_s

    def _after_release(self, now: float) -> Step[Way] | None:
        if self._released is not None:  # nothing came of it
            if not self._everything and self.held[self._released] > 0:
                return self._let_go(self._released, now, everything=True)
            self._silences += 1
        sure = STRICT if self._rules.strict else SURE
        if self._rings >= sure and not (self._rules.strict and self._echoes):
            return self._ask(self._ring_ways(), now)
        if self._echoes >= SURE:
            return self._doubt(now) if self._rings or self._is_much() else self._end("legal")
        if self._silences >= SURE or self._turns >= TURNS:
            return self._doubt(now)
        return self._release(now)

    def _is_open(self) -> bool:
        """Tell whether a canary that did not come back leaves it open whether there is a ring."""
        return self._doubts and not self._is_few

    def _is_much(self) -> bool:
        """Tell whether so many copies wait that several hubs may hold those of one mesh."""
        is_alone = (self._rules.strict or self._everything) and not self._others_ask
        return self._is_mesh or (self._is_crowd() and not is_alone)

    def _doubt(self, now: float) -> Step[Way] | None:
        """Return the step when holding tells nothing: others may hold too."""
        self._doubts, tried, strict = True, self._rules.tried, self._rules.strict
        if strict and tried and not self._is_crowd():
            return self._end("legal")
        may_ask = self._others_ask or not (strict or self._is_queue or (self._is_few and not tried))
        return self._ask(self._ring_ways(), now) if may_ask else self._end("unknown")

    def _ring_ways(self) -> tuple[Way, ...]:
        """Return one way of the ring, which is enough: it turns both ways."""
        waiting = [way for way in self._quiet() if self.held[way] > 0] or self._quiet()
        return (self._choose(waiting),) if waiting else ()

    def _release(self, now: float) -> Step[Way] | None:
        waiting = [way for way in self._quiet() if self.held[way] > 0]
        if not waiting:
            return self._doubt(now)
        self._turns += 1
        return self._let_go(self._choose(waiting), now, everything=False)

    def _let_go(self, way: Way, now: float, everything: bool) -> Step[Way]:
        self._released, self._everything = way, everything
        self.held[way] = 0 if everything else self.held[way] - 1
        self.due_s = min(now + self._lap_s / 2, self._end_s)
        return Release(way, everything)

    def _ask(self, ways: tuple[Way, ...], now: float) -> Step[Way]:
        if not ways:
            return self._end("unknown")
        self.asked, self._released = True, None
        wait_s = 0.0 if self._is_slow else max(ASK_S, self._lap_s)  # slow copies do no harm meanwhile
        self.due_s = min(now + wait_s, self._end_s)
        return Ask(ways)
