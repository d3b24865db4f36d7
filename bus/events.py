"""Events of the appliance itself: a record of each, and the frame that tells it on a reserved pattern."""

import json
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from bus.wire.frame import DATA_BYTES_MAX, PUB, pack
from bus.wire.notation import pattern_of
from bus.wire.pattern import Pattern

Kind = Literal["link", "loop", "lease", "takeover", "drop"]
WORD = "buscoupler/event"
PATTERN = pattern_of(WORD)

Record = Callable[..., object]
"""Records an event: `record(kind, source, cause, level, **counts)`, as `appliance.monitor.Monitor.record`."""


class Event(NamedTuple):
    """`time_ns` since 1970; `source` is the gateway and part; `counts` are integers by name."""

    time_ns: int
    kind: Kind
    source: str
    cause: str
    counts: Mapping[str, int] = {}

    def line(self) -> str:
        """Return one line for people, without the time."""
        numbers = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        return f"{self.kind}: {self.source}: {self.cause}" + (f" ({numbers})" if numbers else "")

    def told(self) -> dict[str, object]:
        """Return the parts that the line has as text, for programs."""
        return {"kind": self.kind, "source": self.source, "cause": self.cause, "counts": dict(self.counts)}

    def frame(self) -> bytes:
        """Return a PUB frame on (buscoupler, event, kind); the data is JSON, cut to what a frame carries."""
        data = b""
        for cause in (self.cause, self.cause[:256]):
            record = {"time_ns": self.time_ns, "source": self.source[:256], "cause": cause}
            data = json.dumps(record | {"counts": dict(self.counts)}, separators=(",", ":")).encode()
            if len(data) <= DATA_BYTES_MAX:
                return pack(PUB, (*PATTERN, *Pattern(self.kind)), data)
        return pack(PUB, (*PATTERN, *Pattern(self.kind)), json.dumps(record).encode()[:DATA_BYTES_MAX])
