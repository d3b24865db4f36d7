"""Events of the appliance: a record of each, and its frame on a reserved pattern."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from bus.fitting import cut, fitted
from bus.wire.frame import PUB, pack, published
from bus.wire.notation import pattern_of
from bus.wire.pattern import Pattern

KINDS: Final[Mapping[str, str]] = {
    "link": "the state of a link to a medium, or of a recorder, changed",
    "loop": "what was sent came back, and a pipe was cut",
    "lease": "a candidate got, lost or gave back its lease, or cannot be chosen",
    "takeover": "a candidate began to forward",
    "late": "a gateway lost its lease without a fault: it was late or stopped, not dead",
    "health": "the health of a gateway has another word: `ok`, `degraded` or `trouble`",
    "alarm": "an alarm was raised, acknowledged or cleared",
    "drop": "messages were dropped that nobody intended, by reason",
}
"""The kinds of events that gateways publish. Programs may publish events of other kinds: any text."""
WORD: Final = "buscoupler/event"
PATTERN: Final = pattern_of(WORD)
_NAME_LETTERS: Final = 256

RecordEvent = Callable[..., object]
"""A function that records an event, as `Monitor.record`: `record(kind, source, cause, level, **counts)`."""


class Event(NamedTuple):
    """One event. `time_ns` since 1970; `source` is the gateway and part; `counts` are integers by name."""

    time_ns: int
    kind: str
    source: str
    cause: str
    counts: Mapping[str, int] = {}

    def line(self) -> str:
        """Return the event as one line for people, without the time."""
        numbers = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        return f"{self.kind}: {self.source}: {self.cause}" + (f" ({numbers})" if numbers else "")

    def fields(self) -> dict[str, object]:
        """Return the parts of the event that its line has as text, for programs."""
        return {"kind": self.kind, "source": self.source, "cause": self.cause, "counts": dict(self.counts)}

    def frame(self) -> bytes:
        """Return the event as a PUB frame on (buscoupler, event, kind).

        The data is JSON that fits a frame: long texts are cut, and say so.
        """
        record = {
            "time_ns": self.time_ns,
            "kind": cut(self.kind, _NAME_LETTERS),
            "source": cut(self.source, _NAME_LETTERS),
            "cause": self.cause,
            "counts": dict(self.counts),
        }
        data = fitted(record, ("cause", "source", "kind"), "counts")
        return pack(PUB, (*PATTERN, *Pattern(self.kind)), data)


def read_event(message: bytes) -> Event | None:
    """Return the event in a message; None if the message holds none."""
    frame = published(message, PATTERN)
    if frame is None:
        return None
    try:
        return _event(json.loads(frame.data.decode()))
    except (ValueError, RecursionError):
        return None


def _event(fields: Any) -> Event | None:
    match fields:
        case {"time_ns": int(time_ns), "kind": str(kind), "source": str(source), "cause": str(cause)}:
            counts = fields.get("counts")
            numbers = counts.items() if isinstance(counts, dict) else ()
            return Event(time_ns, kind, source, cause, {k: v for k, v in numbers if isinstance(v, int)})
    return None
