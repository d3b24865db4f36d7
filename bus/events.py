"""Events: what happened to the appliance itself, as a record, and as a frame on a reserved pattern."""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from bus.wire.frame import DATA_BYTES_MAX, PUB, Frame, pack
from bus.wire.pattern import Pattern

Kind = Literal["link", "loop", "lease", "takeover", "shed"]
PATTERN = Pattern("buscoupler", "event")
_KINDS: dict[int, Kind] = {Pattern(kind)[0]: kind for kind in get_args(Kind)}


class Event(NamedTuple):
    """`time_ns` since 1970; `source` is the gateway and part; `counts` are integers by name."""

    time_ns: int
    kind: Kind
    source: str
    cause: str
    counts: Mapping[str, int] = {}

    def line(self) -> str:
        """For people: one line, without the time."""
        numbers = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        return f"{self.kind}: {self.source}: {self.cause}" + (f" ({numbers})" if numbers else "")

    def frame(self) -> bytes:
        """PUB on (buscoupler, event, kind); the data is JSON, cut to what a frame carries."""
        data = b""
        for cause in (self.cause, self.cause[:256]):
            record = {"time_ns": self.time_ns, "source": self.source[:256], "cause": cause}
            data = json.dumps(record | {"counts": dict(self.counts)}, separators=(",", ":")).encode()
            if len(data) <= DATA_BYTES_MAX:
                return pack(PUB, (*PATTERN, *Pattern(self.kind)), data)
        return pack(PUB, (*PATTERN, *Pattern(self.kind)), json.dumps(record).encode()[:DATA_BYTES_MAX])


def event_of(frame: Frame) -> Event | None:
    """The event that a frame carries, or None."""
    if frame.tokens[:2] != PATTERN or len(frame.tokens) != 3 or frame.tokens[2] not in _KINDS:
        return None
    try:
        record: dict[str, Any] = json.loads(frame.data)
        counts = {str(name): int(count) for name, count in record.get("counts", {}).items()}
        return Event(
            int(record["time_ns"]),
            _KINDS[frame.tokens[2]],
            str(record["source"]),
            str(record["cause"]),
            counts,
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
