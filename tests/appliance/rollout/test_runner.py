"""Asking gateways in a roll-out: whatever stops the command, those that have the new file go back."""

import os
import signal

import pytest

from appliance.process import interrupts
from appliance.rollout.plan import Pace, Rollout
from appliance.rollout.runner import go
from appliance.rollout.steps import Answer

NAMES = ["gw-a", "gw-b"]


class Gateways:
    """Gateways that do each step at once."""

    def __init__(self) -> None:
        self.files = dict.fromkeys(NAMES, "old")

    def ask(self, gateway: str, step: str, _old: str) -> Answer:
        if step in ("apply", "back"):
            self.files[gateway] = "new" if step == "apply" else "old"
        return Answer(touched=step != "look", hash=self.files[gateway], word="ok")


def agreed(gateways: Gateways) -> Rollout:
    rollout = Rollout(NAMES, "new", Pace())
    go(rollout, gateways.ask, lambda *_: None)
    rollout.agree(True)
    return rollout


@pytest.mark.parametrize("number", interrupts.STOPS)
def test_a_signal_while_an_answer_is_told_loses_no_answer_and_all_go_back(number: signal.Signals) -> None:
    gateways = Gateways()
    rollout = agreed(gateways)

    def told(_gateway: str, step: str, _answer: Answer | str) -> None:
        if step == "apply":
            os.kill(os.getpid(), number)

    with interrupts.raised():
        go(rollout, gateways.ask, told)
    assert (rollout.phase, rollout.mixed(), set(gateways.files.values())) == ("failed", [], {"old"})
    assert [note for _, note in rollout.notes()] == ["interrupted"]


def test_a_signal_that_comes_with_the_last_look_lets_nobody_be_asked_to_agree() -> None:
    gateways, rollout, told = Gateways(), Rollout(NAMES, "new", Pace()), list[str]()

    def tell(gateway: str, *_: object) -> None:
        told.append(gateway)
        if len(told) == len(NAMES):
            os.kill(os.getpid(), signal.SIGINT)

    go(rollout, gateways.ask, tell)
    assert (rollout.phase, len(told)) == ("refused", len(NAMES))


def test_an_output_that_nobody_reads_any_more_lets_all_go_back() -> None:
    gateways = Gateways()
    rollout = agreed(gateways)

    def told(*_: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    go(rollout, gateways.ask, told)
    assert (rollout.phase, rollout.mixed(), set(gateways.files.values())) == ("failed", [], {"old"})
    assert [note for _, note in rollout.notes()] == ["the output takes nothing more (Broken pipe)"]
