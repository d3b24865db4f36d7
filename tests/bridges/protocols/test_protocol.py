"""What a protocol is unless it says otherwise, and the words of what is wrong with it."""

from dataclasses import dataclass
from typing import ClassVar

from bridges.protocols.protocol import Problem, Protocol
from bus.schema import Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(Protocol):
    """A protocol that says nothing of itself."""

    key: ClassVar = "plain"
    help: ClassVar = "a protocol"
    items: ClassVar = ("bytes",)


def test_a_problem_is_an_error_unless_it_is_said() -> None:
    problem = Problem("no such signal")
    assert (problem.is_error, problem.is_note) == (True, False)
    assert str(problem) == "no such signal"
    assert str(Problem("no such signal", where=Where("x.dbc", 4))) == "x.dbc:4: no such signal"


def test_a_protocol_sends_nothing_in_doubt_and_little_from_before_unless_it_is_told_to() -> None:
    assert (Plain().stops_in_doubt, Plain(on_doubt="go on").stops_in_doubt) == (True, False)
    assert (Plain().replay, Plain().age_ms) == (True, 100)
    assert {Plain.asks, Plain.sourceless, Plain.named, Plain.holds} == {False}
    assert Plain.deaf
