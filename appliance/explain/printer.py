"""The text and the record of hops, whether they were foreseen or seen. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from appliance.explain.client import Trace
from appliance.explain.hop import Exit, Hop

_OF_A_TRACE: Final = {"bus", "pipes", "inside"}  # a rehearsal does not know these fields


def plan_lines(hops: Iterable[Hop], start: str, pattern: str) -> Iterator[str]:
    """Yield where a frame from the link `start` would go, a line each, for people."""
    yield f"{pattern} from {start}"
    for hop in hops:
        yield from _lines(hop)


def plan_record(hops: Iterable[Hop], start: str, pattern: str) -> dict[str, Any]:
    """Return where a frame from the link `start` would go, for programs."""
    return {"pattern": pattern, "from": start, "hops": [_record(hop) for hop in hops]}


def trace_lines(trace: Trace, pattern: str, seconds: float) -> Iterator[str]:
    """Yield what a trace saw, a line each, for people."""
    yield f'{pattern} from {trace.start.link} on {trace.gateway}: {trace.size} bytes with "{trace.mark}"'
    for hop in trace.hops:
        yield from _lines(hop, trace.began_ns)
    if trace.more:
        yield "  and it came more often: only the first arrivals are kept"
    yield from (f"  not asked: {text}" for text in trace.failed)
    yield f"watched for {seconds:g} s: {', '.join(trace.watched)}"


def trace_record(trace: Trace, pattern: str, seconds: float) -> dict[str, Any]:
    """Return a trace for programs. Times are microseconds since the frame came in."""
    return {
        "pattern": pattern,
        "from": trace.start.link,
        "gateway": trace.gateway,
        "mark": trace.mark,
        "bytes": trace.size,
        "seconds": seconds,
        "delivered": trace.delivered,
        "watched": list(trace.watched),
        "failed": list(trace.failed),
        "hops": [_record(hop, trace.began_ns) for hop in trace.hops],
        "more": trace.more,
    }


def _lines(hop: Hop, began_ns: int | None = None) -> Iterator[str]:
    """Yield the lines of a hop, with times since `began_ns` if there is one."""
    after = "" if began_ns is None else f", after {_time(hop.at_ns - began_ns)}"
    stopped = f": stopped: {', '.join(hop.stopped)}" if hop.stopped else ""
    yield f"  {hop.part} on {hop.gateway}, by {hop.by}{after}{stopped}"
    yield from (_exit_line(one, began_ns) for one in hop.exits)
    yield from (f"     . {remark}" for remark in hop.remarks)


def _exit_line(one: Exit, began_ns: int | None) -> str:
    words = [f"stopped: {', '.join(one.stopped)}"] if one.stopped else []
    if one.at_ns is not None and began_ns is not None and not one.inside:
        words.append(f"sent after {_time(one.at_ns - began_ns)}")
    words += [f"{one.pipes} peers"] if one.pipes > 1 else []
    text = "; ".join([*words, *one.remarks])
    sign = "x" if one.stopped else ">" if one.at_ns is not None else "?"
    return f"    {sign} {one.to}{f' ({text})' if text else ''}"


def _time(ns: int) -> str:
    return f"{ns / 1e6:.1f} ms" if ns >= 1_000_000 else f"{ns // 1000} us"


def _record(hop: Hop, began_ns: int | None = None) -> dict[str, Any]:
    found = _fields(hop, began_ns)
    remarks, exits = found.pop("remarks"), found.pop("exits")
    return {**found, "ways": [_fields(one, began_ns) for one in exits], "remarks": remarks}


def _fields(one: Hop | Exit, began_ns: int | None) -> dict[str, Any]:
    found = one._asdict()
    at_ns = found.pop("at_ns")
    if began_ns is None:
        return {name: value for name, value in found.items() if name not in _OF_A_TRACE}
    return {"at_us": None if at_ns is None else (at_ns - began_ns) // 1000, **found}
