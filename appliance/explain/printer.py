"""The text and the record of a trace. Pure."""

from collections.abc import Iterator
from typing import Any

from appliance.explain.client import Trace
from appliance.explain.words import Hop, Way


def lines(trace: Trace, pattern: str, seconds: float) -> Iterator[str]:
    """Yield what a trace saw, a line each, for people."""
    gateway = trace.start.running.answer.gateway
    yield f'{pattern} from {trace.start.link} on {gateway}: {trace.size} bytes with "{trace.mark}"'
    for hop in trace.hops:
        yield from _hop(hop, trace.began_ns)
    if trace.more:
        yield "  and it came more often: only the first arrivals are kept"
    yield from (f"  not asked: {text}" for text in trace.failed)
    yield f"watched for {seconds:g} s: {', '.join(trace.watched)}"


def _hop(hop: Hop, began_ns: int) -> Iterator[str]:
    stopped = f": stopped: {', '.join(hop.stopped)}" if hop.stopped else ""
    yield f"  {hop.part} on {hop.gateway}, by {hop.by}, after {_time(hop.at_ns - began_ns)}{stopped}"
    yield from (_way(way, began_ns) for way in hop.ways)
    yield from (f"     . {remark}" for remark in hop.remarks)


def _way(way: Way, began_ns: int) -> str:
    words = [f"stopped: {', '.join(way.stopped)}"] if way.stopped else []
    if way.at_ns is not None and not way.inside:
        words.append(f"sent after {_time(way.at_ns - began_ns)}")
    words += [f"{way.pipes} peers"] if way.pipes > 1 else []
    text = "; ".join([*words, *way.remarks])
    sign = "x" if way.stopped else ">" if way.at_ns is not None else "?"
    return f"    {sign} {way.to}{f' ({text})' if text else ''}"


def _time(ns: int) -> str:
    return f"{ns / 1e6:.1f} ms" if ns >= 1_000_000 else f"{ns // 1000} us"


def record(trace: Trace, pattern: str, seconds: float) -> dict[str, Any]:
    """Return a trace for programs. Times are microseconds since the frame came in."""
    return {
        "pattern": pattern,
        "from": trace.start.link,
        "gateway": trace.start.running.answer.gateway,
        "mark": trace.mark,
        "bytes": trace.size,
        "seconds": seconds,
        "delivered": trace.delivered,
        "watched": list(trace.watched),
        "failed": list(trace.failed),
        "hops": [_hop_record(hop, trace.began_ns) for hop in trace.hops],
        "more": trace.more,
    }


def _hop_record(hop: Hop, began_ns: int) -> dict[str, Any]:
    found = {**hop._asdict(), "ways": [_way_record(way, began_ns) for way in hop.ways]}
    return {"at_us": (found.pop("at_ns") - began_ns) // 1000, **found}


def _way_record(way: Way, began_ns: int) -> dict[str, Any]:
    found = way._asdict()
    at_ns = found.pop("at_ns")
    return {"at_us": None if at_ns is None else (at_ns - began_ns) // 1000, **found}
