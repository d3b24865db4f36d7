"""The order of a roll-out: one gateway first, then the others, and back if one of them is not well. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from appliance.health.watch import LOOK_S
from appliance.rollout.steps import HOLD_S, Answer, Step
from appliance.status.health import WORDS
from appliance.status.words import TROUBLE_MS

Phase = Literal["look", "agree", "apply", "watch", "confirm", "back", "done", "same", "refused", "failed"]
ENDS: Final[tuple[Phase, ...]] = ("done", "same", "refused", "failed")
POLL_S: Final = 2.0
KEEP_S: Final = HOLD_S / 4
"""Gateways that have been well are asked so often while others follow."""
NOTICE_S: Final = TROUBLE_MS / 1000 + 2 * LOOK_S
"""A gateway needs so long until its health tells of a link that never came up."""
_ABSENT: Final = len(WORDS)


class Pace(NamedTuple):
    """The times and the width of a roll-out: well for `settle_s` within `wait_s`; `at_once` at a time."""

    settle_s: float = 8.0
    wait_s: float = 60.0
    at_once: int = 10


class Due(NamedTuple):
    """A step that is to be asked of a gateway now."""

    gateway: str
    step: Step
    old: str = ""


@dataclass(slots=True)
class _Member:
    """A gateway: `touched` if it may have the new file, `well` once it settled, `notes` why it did not."""

    name: str
    hash: str = ""
    before: str = "ok"
    lines: tuple[str, ...] = ()
    touched: bool = False
    well: bool = False
    finished: bool = False
    notes: tuple[str, ...] = ()
    last: str = ""
    applied_s: float = 0.0
    good_s: float | None = None
    next_s: float = float("-inf")
    asked: set[str] = field(default_factory=set)


class Rollout:
    """One roll-out to `gateways`, in their order. Ask `due`, tell `heard` what came, until it has `ended`.

    `target` is the hash of the new file. A gateway is unwell if its health is worse than it was before.
    """

    def __init__(self, gateways: Sequence[str], target: str, pace: Pace) -> None:
        self.phase: Phase = "look"
        self._members = {name: _Member(name) for name in gateways}
        self._target, self._pace = target, pace
        self._wave: list[_Member] = []
        self._out = dict[str, Step]()
        self._until_s = 0.0

    @property
    def ended(self) -> bool:
        return self.phase in ENDS

    def differences(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield what changes on each gateway, by its name."""
        return ((one.name, one.lines) for one in self._members.values() if one.hash != self._target)

    def notes(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with gateways, by their names: each thing by itself."""
        return ((one.name, note) for one in self._members.values() for note in one.notes)

    def mixed(self) -> list[str]:
        """Return the gateways of which it is not known that they have the file that the others have now."""
        if self.phase not in ("done", "failed"):
            return []
        return [one.name for one in self._members.values() if one.touched and not one.finished]

    def agree(self, yes: bool) -> None:
        """Go on after the differences were shown, or stop with nothing changed."""
        assert self.phase == "agree"
        self.phase = "apply" if yes else "refused"
        if yes:
            self._next_wave()

    def stop(self, why: str, now_s: float) -> None:
        """Go back, as when somebody interrupts. Before anything is changed, just end."""
        if self.phase in ("look", "agree"):
            self.phase = "refused"
        elif self.phase in ("apply", "watch"):
            next(iter(self._members.values())).notes = (why,)
            self._go_back(now_s)

    def due(self, now_s: float) -> list[Due]:
        """Return the steps to ask now. None is asked of a gateway while one is under way there."""
        found = [one for one in self._steps(now_s) if one.gateway not in self._out]
        for one in found:
            self._out[one.gateway] = one.step
            self._members[one.gateway].asked.add(one.step)
        return found

    def _steps(self, now_s: float) -> Iterator[Due]:
        if self.phase in ("look", "apply"):
            step: Step = "look" if self.phase == "look" else "apply"
            some = self._members.values() if step == "look" else self._wave
            yield from (Due(one.name, step, one.hash) for one in some if step not in one.asked)
        if self.phase in ("apply", "watch"):
            touched = (one for one in self._members.values() if one.touched and "apply" in one.asked)
            yield from (Due(one.name, "health") for one in touched if now_s >= one.next_s)
        if self.phase in ("confirm", "back"):
            last: Step = "confirm" if self.phase == "confirm" else "back"
            open_ones = (one for one in self._members.values() if one.touched and not one.finished)
            yield from (Due(one.name, last) for one in open_ones if now_s >= one.next_s)

    def heard(self, gateway: str, answer: Answer | str, now_s: float) -> None:
        """Take an answer of a gateway, or the text why none came."""
        member, step = self._members[gateway], self._out.pop(gateway)
        if isinstance(answer, str):
            answer = Answer(answer, touched=step != "look")
        if step == "look":
            self._looked(member, answer)
        elif step == "apply":
            self._applied(member, answer, now_s)
        elif step == "health":
            self._judge(member, answer, now_s)
        elif self.phase in ("confirm", "back"):  # an answer of another phase is asked for again
            self._ended(member, answer, now_s)
        self._turn(now_s)

    def tick(self, now_s: float) -> None:
        """Let time pass: bounds of the last phases end them."""
        self._turn(now_s)

    def _looked(self, member: _Member, answer: Answer) -> None:
        member.notes, member.lines = _noted(answer), answer.lines
        member.hash, member.before = answer.hash, answer.word

    def _applied(self, member: _Member, answer: Answer, now_s: float) -> None:
        member.touched, member.notes = answer.touched, _noted(answer) or member.notes
        member.applied_s, member.next_s = now_s, now_s + POLL_S

    def _judge(self, member: _Member, answer: Answer, now_s: float) -> None:
        good = not answer.error and _rank(answer.word) <= _rank(member.before)
        member.next_s = now_s + (KEEP_S if member.well and good else POLL_S)
        if good:
            member.good_s = now_s if member.good_s is None else member.good_s
            member.well = member.well or now_s - member.good_s >= self._pace.settle_s
            return
        if member.well:
            member.applied_s, member.well = now_s, False  # it has its time again
        member.good_s, member.last = None, answer.error or answer.line or answer.word

    def _ended(self, member: _Member, answer: Answer, now_s: float) -> None:
        member.finished, member.next_s = not answer.error, now_s + POLL_S
        if answer.error:
            member.last = answer.error

    def _turn(self, now_s: float) -> None:
        """Go to the next phase if this one has all that it waits for."""
        if self.phase == "look" and not self._out and self._all_asked("look", self._members.values()):
            self._after_look()
        elif self.phase == "apply" and not self._out and self._all_asked("apply", self._wave):
            if any(one.notes for one in self._wave):
                self._go_back(now_s)
            else:
                self.phase = "watch"
        if self.phase in ("apply", "watch"):
            self._watch(now_s)
        if self.phase in ("confirm", "back"):
            self._finish(now_s)

    def _after_look(self) -> None:
        if any(one.notes for one in self._members.values()):
            self.phase = "refused"
        else:
            self.phase = "agree" if any(self.differences()) else "same"

    def _watch(self, now_s: float) -> None:
        touched = [one for one in self._members.values() if one.touched]
        for one in touched:
            if not one.well and now_s - one.applied_s >= self._pace.wait_s:
                was = one.last or "it did not answer"
                late = f"not well within {self._pace.wait_s:g} s ({was}), and it was {one.before} before"
                one.notes = (late,)
                return self._go_back(now_s)
        if self.phase == "watch" and all(one.well for one in touched):
            self._next_wave()
            if not self._wave:
                self.phase, self._until_s = "confirm", now_s + HOLD_S / 2
                self._ask_all_now()

    def _finish(self, now_s: float) -> None:
        open_ones = [one for one in self._members.values() if one.touched and not one.finished]
        late = now_s >= self._until_s
        if self._out or (open_ones and not late):
            return
        back = self.phase == "back"
        for one in open_ones:
            what = "it is not known to have gone back" if back else "it is not known to keep the new file"
            text = f"{what} ({one.last}): it goes back by itself within {HOLD_S:g} s unless it heard us"
            one.notes += (text,)
        self.phase = "failed" if back else "done"

    def _go_back(self, now_s: float) -> None:
        self.phase, self._until_s = "back", now_s + HOLD_S / 2
        self._ask_all_now()

    def _ask_all_now(self) -> None:
        for one in self._members.values():
            one.next_s = float("-inf")

    def _next_wave(self) -> None:
        """Choose who applies next: one first, then as many as may at once; at the end none."""
        rest = [
            one for one in self._members.values() if "apply" not in one.asked and one.hash != self._target
        ]
        first = not self._wave
        self._wave = rest[: 1 if first else self._pace.at_once]
        if self._wave:
            self.phase = "apply"

    @staticmethod
    def _all_asked(step: str, some: Iterable[_Member]) -> bool:
        return all(step in one.asked for one in some)


def _noted(answer: Answer) -> tuple[str, ...]:
    return (answer.error,) if answer.error else ()


def _rank(word: str) -> int:
    """Return how bad a health is; that of a gateway that does not run is the worst."""
    return WORDS.index(word) if word in WORDS else _ABSENT
