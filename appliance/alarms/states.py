"""The states of alarms, as gateways exchange, merge and keep them. Pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from bus.text import plain
from topologies.model.alarms import STAGES, Stage

NUMBER_MAX: Final = 1 << 48
TEXT_MAX: Final = 256
"""The characters of a cause or a name in a state."""
TOLD_MAX: Final = 16
_NS_MAX: Final = 1 << 62


class State(NamedTuple):
    """The state of one subject of an alarm.

    `number` grows by one each time that the alarm is raised; of two states, the one with the larger number,
    then the later stage, is the newer. `of` is the subject in words, `since_ns` the time of the last change,
    since 1970, `by` who made it, `told` are the outlets that told people of it, and `failed` those that gave
    up.
    """

    number: int
    stage: Stage
    of: str
    since_ns: int
    cause: str
    by: str
    told: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()

    @property
    def version(self) -> tuple[int, int]:
        """The place of the state in the history of its alarm."""
        return self.number, STAGES.index(self.stage)

    @property
    def is_on(self) -> bool:
        """Whether the alarm is raised, acknowledged or not."""
        return self.stage != "cleared"

    def moved(self, stage: Stage, since_ns: int, by: str) -> "State":
        """Return the state at a later stage, of which nobody was told."""
        return State(self.number, stage, self.of, since_ns, self.cause, words_of(by))

    def noted(self, outlet: str, told: bool) -> "State":
        """Return the state with an outlet that told people of it, or gave up."""
        if told:
            return self._replace(told=self.told | {outlet}, failed=self.failed - {outlet})
        return self._replace(failed=self.failed | {outlet} - self.told)

    def as_record(self) -> dict[str, Any]:
        """Return the state as JSON has it."""
        return self._asdict() | {"told": sorted(self.told), "failed": sorted(self.failed)}


def merged(mine: State | None, other: State) -> State:
    """Return the newer one of two states; of the same one, with all outlets that told people, or gave up."""
    if mine is None or other.version > mine.version:
        return other
    if other.version == mine.version:
        told = mine.told | other.told
        return mine._replace(told=told, failed=(mine.failed | other.failed) - told)
    return mine


def state_of(record: Mapping[str, Any]) -> State | None:
    """Return the state in a record that anybody may have written; None if there is none."""
    match record:
        case {
            "number": int(number), "stage": str(stage), "of": str(of), "since_ns": int(since_ns),
            "cause": str(cause), "by": str(by), "told": list(told),
        } if stage in STAGES and 0 < number < NUMBER_MAX and 0 <= since_ns <= _NS_MAX:  # fmt: skip
            some = words_of(of), int(since_ns), words_of(cause), words_of(by)
            return State(int(number), stage, *some, _names(told), _names(record.get("failed")) - _names(told))
    return None


def _names(found: object) -> frozenset[str]:
    some = found[:TOLD_MAX] if isinstance(found, list) else ()
    return frozenset(words_of(one) for one in some if isinstance(one, str))


def words_of(text: str) -> str:
    """Return words of a state as headers, metrics and messages to a service manager can have them."""
    return plain(text[:TEXT_MAX])
