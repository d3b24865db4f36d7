"""The order of a roll-out in virtual time: whatever goes wrong, all gateways have one file, or are named."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from appliance.rollout.plan import NOTICE_S, POLL_S, Pace, Rollout
from appliance.rollout.steps import HOLD_S, Answer

NAMES = [f"gw-{number}" for number in range(7)]
PACE = Pace(settle_s=8, wait_s=40, at_once=3)


@dataclass
class Plant:
    """Gateways as a roll-out sees them. `wrong` gives another answer to a step, None, or a text for a cut."""

    wrong: Callable[[str, str, float], Answer | str | None] = lambda *_: None
    files: dict[str, str] = field(default_factory=lambda: dict.fromkeys(NAMES, "old"))
    trial: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)
    now_s: float = 0.0

    def do(self, gateway: str, step: str) -> Answer | str:
        self.asked.append((gateway, step))
        found = self.wrong(gateway, step, self.now_s)
        if found is not None and not (isinstance(found, str) and found.startswith("after")):
            return found
        if step == "apply":
            self.files[gateway] = "new"
            self.trial.add(gateway)
        if step == "back" and gateway in self.trial:
            self.files[gateway] = "old"
        if step in ("confirm", "back"):
            self.trial.discard(gateway)
        return found or Answer(touched=step != "look", hash=self.files[gateway], word="ok")

    def run(self, rollout: Rollout) -> str:
        while not rollout.ended:
            for due in rollout.due(self.now_s):
                rollout.heard(due.gateway, self.do(due.gateway, due.step), self.now_s)
            if rollout.phase == "agree":
                rollout.agree(True)
            self.now_s += 0.5
            rollout.tick(self.now_s)
            assert self.now_s < 2000
        return rollout.phase

    def settle(self) -> None:
        """Let those on trial go back by themselves, as their guards do."""
        for gateway in self.trial:
            self.files[gateway] = "old"


def test_one_is_first_and_the_others_follow_once_it_was_well() -> None:
    plant = Plant()
    assert plant.run(Rollout(NAMES, "new", PACE)) == "done"
    assert set(plant.files.values()) == {"new"}
    assert not plant.trial
    applies = [at for at, (_, step) in enumerate(plant.asked) if step == "apply"]
    first = [name for name, step in plant.asked[: applies[1]] if step == "health"]
    assert set(first) == {"gw-0"}
    assert 4 <= len(first) <= PACE.settle_s / POLL_S + 1
    assert plant.now_s < 60


@pytest.mark.parametrize("settle_s", [NOTICE_S, PACE.settle_s])
def test_a_dead_link_that_a_gateway_tells_of_late_is_noticed(settle_s: float) -> None:
    since_s = dict[str, float]()

    def dead(gateway: str, step: str, now_s: float) -> Answer | None:
        if step == "apply":
            since_s[gateway] = now_s
        told = gateway == NAMES[-1] and step == "health" and now_s - since_s[gateway] >= NOTICE_S
        return Answer(touched=True, hash="new", word="trouble") if told else None

    plant = Plant(dead)
    assert plant.run(Rollout(NAMES, "new", PACE._replace(settle_s=settle_s))) == "failed"
    assert set(plant.files.values()) == {"old"}


def test_who_has_the_file_is_left_alone() -> None:
    plant = Plant()
    plant.files = dict.fromkeys(NAMES, "new")
    assert plant.run(Rollout(NAMES, "new", PACE)) == "same"
    plant.files["gw-3"] = "old"
    assert plant.run(Rollout(NAMES, "new", PACE)) == "done"
    assert [name for name, step in plant.asked if step == "apply"] == ["gw-3"]


BAD = {
    "unreachable": lambda g, step, t: "No route to host" if g == "gw-4" else None,
    "check refuses": lambda g, step, t: Answer("line 3: no") if (g, step) == ("gw-4", "look") else None,
}


@pytest.mark.parametrize("wrong", BAD.values(), ids=list(BAD))
def test_nothing_changes_where_a_gateway_refuses_before(
    wrong: Callable[[str, str, float], Answer | str | None],
) -> None:
    plant, rollout = Plant(wrong), Rollout(NAMES, "new", PACE)
    assert plant.run(rollout) == "refused"
    assert {step for _, step in plant.asked} == {"look"}
    assert [name for name, _ in rollout.notes()] == ["gw-4"]


def _for(
    steps: str, answer: Answer | str, after_s: float = 0.0
) -> Callable[[str, str, float], Answer | str | None]:
    return lambda g, step, t: answer if g == at[0] and step in steps.split() and t >= after_s else None


at = {0: "gw-0"}
LATER = {
    "reload refused": _for("apply", Answer("refused")),
    "changed since": _for("apply", Answer("was changed since it was looked at")),
    "another roll-out": _for("apply", Answer("on trial here")),
    "cut before it was applied": _for("apply", "cut"),
    "cut after it was applied": _for("apply", "after: cut"),
    "unwell": _for("health", Answer(touched=True, word="trouble", line="a link is down")),
    "worse": _for("health", Answer(touched=True, word="degraded")),
    "gone": _for("health", Answer(touched=True, word="absent")),
    "cut while it is watched": _for("health", "cut"),
    "its trial is over": _for("health", Answer("its trial is over")),
    "cut for good": _for("apply health back confirm", "after: cut"),
    "cut before and for good": _for("apply health back confirm", "cut"),
}


@pytest.mark.parametrize("where", ["gw-0", "gw-2", "gw-6"])
@pytest.mark.parametrize("wrong", LATER.values(), ids=list(LATER))
def test_all_go_back_where_one_is_not_well(
    wrong: Callable[[str, str, float], Answer | str | None], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(at, 0, where)
    plant, rollout = Plant(wrong), Rollout(NAMES, "new", PACE)
    assert plant.run(rollout) == "failed"
    assert where in dict(rollout.notes())
    assert set(rollout.mixed()) <= {where}
    plant.settle()
    assert set(plant.files.values()) == {"old"}
    if where == "gw-0":
        assert {name for name, step in plant.asked if step == "apply"} == {"gw-0"}


def test_an_unwell_gateway_of_an_earlier_wave_counts_too_and_a_short_fault_does_not() -> None:
    ill = Answer(touched=True, word="trouble", line="down")
    plant = Plant(lambda g, step, t: ill if g == "gw-0" and step == "health" and 3 < t < 12 else None)
    assert plant.run(Rollout(NAMES, "new", PACE)) == "done"
    plant = Plant(lambda g, step, t: ill if g == "gw-0" and step == "health" and t > 15 else None)
    assert plant.run(Rollout(NAMES, "new", PACE._replace(at_once=1))) == "failed"
    assert set(plant.files.values()) == {"old"}


def test_a_gateway_that_was_unwell_before_need_not_be_better() -> None:
    ill = Answer(touched=True, hash="old", word="trouble")
    plant = Plant(lambda g, step, t: ill if g == "gw-1" and step in ("look", "health") else None)
    assert plant.run(Rollout(NAMES, "new", PACE)) == "done"


def test_a_confirmation_is_tried_again_and_who_never_heard_it_is_named() -> None:
    plant = Plant(lambda g, step, t: "cut" if (g, step) == ("gw-5", "confirm") and t < 40 else None)
    rollout = Rollout(NAMES, "new", PACE)
    assert (plant.run(rollout), rollout.mixed()) == ("done", [])
    plant = Plant(lambda g, step, t: "cut" if (g, step) == ("gw-5", "confirm") else None)
    rollout = Rollout(NAMES, "new", PACE)
    assert (plant.run(rollout), rollout.mixed()) == ("done", ["gw-5"])
    assert plant.now_s < 40 + HOLD_S


@pytest.mark.parametrize("after", range(0, 60, 3))
def test_an_interrupt_leaves_one_file(after: int) -> None:
    plant, rollout, phases = Plant(), Rollout(NAMES, "new", PACE), list[str]()

    def stopped(gateway: str, step: str, now_s: float) -> None:
        if len(plant.asked) == after + 1:
            phases.append(rollout.phase)
            rollout.stop("interrupted", now_s)

    plant.wrong = stopped
    plant.run(rollout)
    end, file = {"look": ("refused", "old"), "confirm": ("done", "new")}.get(phases[0], ("failed", "old"))
    assert (rollout.phase, set(plant.files.values())) == (end, {file})
    assert not plant.trial
