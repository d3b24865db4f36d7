"""The JSON of OTLP, the protocol of OpenTelemetry (opentelemetry-proto 1.x, `trace.proto`, `logs.proto`).

Ids are hex digits, and numbers of 64 bits are texts, as the protocol has them in JSON.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from appliance.version import version

Value = str | int | bool
TRACES: Final = "/v1/traces"
LOGS: Final = "/v1/logs"
TEXT_MAX: Final = 4096
"""The longest text of a line or an attribute, in characters."""
_SEVERITY: Final = ((50, 21), (40, 17), (30, 13), (20, 9))
_INTERNAL, _ERROR = 1, 2


class Span(NamedTuple):
    """The way of one message through one bridge, from `start_ns` to `end_ns` since 1970.

    `events` are what happened at each way out: time, name. `trouble` says what went wrong, if anything.
    """

    trace: str
    span: str
    parent: str
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Value]
    events: Sequence[tuple[int, str]] = ()
    trouble: str = ""

    def fields(self) -> dict[str, Any]:
        """Return the span as OTLP has it."""
        made = {
            "traceId": self.trace,
            "spanId": self.span,
            "name": self.name,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(self.start_ns),
            "endTimeUnixNano": str(max(self.start_ns, self.end_ns)),
            "attributes": attributes(self.attributes),
            "events": [{"timeUnixNano": str(at_ns), "name": name[:TEXT_MAX]} for at_ns, name in self.events],
            "status": {"code": _ERROR, "message": self.trouble[:TEXT_MAX]} if self.trouble else {},
        }
        return {**made, "parentSpanId": self.parent} if self.parent else made


def line(record: logging.LogRecord, message: str) -> dict[str, Any]:
    """Return a line of the log as OTLP has it. An event of a gateway has its kind, source and counts."""
    found: dict[str, Value] = {"logger": record.name}
    event = record.__dict__.get("fields", {}).get("event")
    if isinstance(event, dict):
        found |= {"event.name": f"buscoupler.{event['kind']}", "source": str(event["source"])}
        found |= {f"count.{name}": count for name, count in event["counts"].items()}
    return {
        "timeUnixNano": str(int(record.created * 1e9)),
        "severityNumber": next((number for level, number in _SEVERITY if record.levelno >= level), 5),
        "severityText": record.levelname,
        "body": {"stringValue": message[:TEXT_MAX]},
        "attributes": attributes(found),
    }


def attributes(values: Mapping[str, Value]) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them."""
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value[:TEXT_MAX]}


def request(path: str, records: Iterable[Mapping[str, Any]], resource: Mapping[str, Value]) -> bytes:
    """Return the body of a request to `TRACES` or `LOGS`."""
    outer, scoped, inner = (
        ("resourceSpans", "scopeSpans", "spans")
        if path == TRACES
        else ("resourceLogs", "scopeLogs", "logRecords")
    )
    scope = {"name": "buscoupler", "version": version()}
    body = {"resource": {"attributes": attributes(resource)}, scoped: [{"scope": scope, inner: [*records]}]}
    return json.dumps({outer: [body]}, separators=(",", ":")).encode()


def rejected(answer: bytes) -> tuple[int, str]:
    """Return how many records of a request a collector that answered 200 has not taken, and why.

    It says so in `partialSuccess` (OTLP/HTTP, "Partial Success"). Anything else in the body is passed over.
    """
    try:
        found = json.loads(answer)["partialSuccess"]
        count = found.get("rejectedSpans") or found.get("rejectedLogRecords") or 0
        return max(0, int(count)), str(found.get("errorMessage", ""))[:TEXT_MAX]
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError, OverflowError):
        return 0, ""
