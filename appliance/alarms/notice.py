"""The notice that outlets bring to people: one change of an alarm, in the forms that they need. Pure."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from appliance.alarms.states import State
from bus.text import plain
from topologies.model.alarms import AlarmSpec, Stage

_PREFIX = "BUSCOUPLER_ALARM"


class Notice(NamedTuple):
    """One change of an alarm. `id` is the same for all notices of one time that it was raised."""

    system: str
    gateway: str
    alarm: str
    of: str
    state: Stage
    number: int
    severity: str
    text: str
    cause: str
    by: str
    since: str

    @property
    def id(self) -> str:
        """The text that tells this alarm from others, and from itself at another time."""
        return f"{self.system}/{self.alarm}/{self.of}/{self.number}"

    def record(self) -> dict[str, object]:
        """Return the notice as JSON has it."""
        return {"id": self.id, **self._asdict()}

    def environment(self) -> Iterator[tuple[str, str]]:
        """Yield the variables of a command."""
        yield _PREFIX, self.alarm
        for name, value in self.record().items():
            if name != "alarm":
                yield f"{_PREFIX}_{name.upper()}", plain(str(value))

    def line(self) -> str:
        """Return the notice in a line, such as the subject of a mail."""
        words = at_stage(self.state, self.text or self.cause)
        return plain(f"[{self.system}] {self.alarm} {self.state}: {self.of}: {words}")

    def lines(self) -> Iterator[str]:
        """Yield the lines of a mail."""
        yield self.line()
        yield ""
        for name, value in self.record().items():
            yield f"{name}: {plain(str(value))}"


def at_stage(stage: Stage, words: str) -> str:
    """Return the words of why an alarm was raised, as they hold at a stage: of a cleared one no more."""
    return f"was: {words}" if words and stage == "cleared" else words


def notice_of(system: str, gateway: str, alarm: str, spec: AlarmSpec, state: State) -> Notice:
    """Return the notice of a state. `gateway` tells people."""
    since = datetime.fromtimestamp(state.since_ns / 1e9, UTC).isoformat(timespec="milliseconds")
    return Notice(
        system, gateway, alarm, state.of, state.stage, state.number, spec.severity,
        spec.text or "", state.cause, state.by, since,
    )  # fmt: skip
