"""The page of a report: the tables of all jobs as HTML with plots, which needs nothing but a browser."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bus.names import Names
from bus.text import markup
from pipeline.output import svg
from pipeline.output.names import labelled
from pipeline.output.tables import cell, clock, head

if TYPE_CHECKING:
    from pyspark.sql import Row

_WINDOWS: Final = 120  # at most so many in a plot
ROWS_MOST: Final = 200
SIGNALS_MOST: Final = 20
_MARKS_MOST: Final = 500
_BRIDGES_MOST: Final = 40  # in a picture; those with faults first
_STYLE: Final = """
:root { color-scheme: light dark; --soft: #8883; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1180px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .4rem; }
p { margin: .3rem 0; }
.verdict { font-size: 1.1rem; padding: .6rem .9rem; border-left: 5px solid; margin: 1rem 0; }
.green { border-color: #2e8b57; background: #2e8b5718; }
.amber { border-color: #d9a400; background: #d9a40020; }
.red { border-color: #c2271a; background: #c2271a18; }
svg { width: 100%; min-width: 800px; height: auto; font: 12px system-ui, sans-serif; fill: currentColor; }
div.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .15rem .5rem; border-bottom: 1px solid var(--soft); text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; min-width: 4rem; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; min-width: 0; }
"""


def window_s(seen: "Sequence[Row]") -> float:
    """Choose windows so long that plots have some hundred points: a round number of seconds, 0.1 at least."""
    if not seen:
        return 1.0
    span = (max(row.last_ns for row in seen) - min(row.first_ns for row in seen)) / 1e9
    return max(0.1, svg.ceiling(span / _WINDOWS))


def page(where: str, verdict: tuple[str, str], parts: "Mapping[str, Sequence[Row]]", names: Names) -> str:
    """Make the whole page, tokens by their `names`; nothing in it is loaded from elsewhere.

    `verdict` is its color and its line. Of parts that are missing or empty there is the heading.
    """
    color, line = verdict
    parts = defaultdict(tuple, parts)
    judged = f'<div class="verdict {color}">{markup(line)}</div>'
    body, empty = [f"<h1>Capture</h1><p>{markup(where)}</p>", judged], list[str]()
    for heading, name, text in _SECTIONS:
        if name == "signals" and name not in parts:
            continue  # they were not asked for
        plot = _PLOTS[name](parts) if name in _PLOTS else ""
        table = "" if name in _PLOTS_ALONE else _table(parts[name], names)
        if plot or table:
            body.append(f'<h2>{heading}</h2><p>{text}</p><div class="wide">{plot}</div>{table}')
        else:
            empty.append(heading)
    body += [f"<h2>Nothing to show</h2><p>{', '.join(empty)}.</p>"] if empty else []
    title = markup(f"buscoupler: {where}")
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    top = f"<!doctype html><html lang=en><head>{head}<style>{_STYLE}</style></head>"
    return f"{top}<body>{''.join(body)}</body></html>"


def _table(rows: "Sequence[Row]", names: Names) -> str:
    if not rows:
        return ""
    columns = rows[0].__fields__
    heads = "".join(f"<th>{markup(head(name))}</th>" for name in columns)
    shown = (labelled(row.asDict(), names).values() for row in rows[:ROWS_MOST])
    lines = "".join(f"<tr>{''.join(map(_cell, columns, values))}</tr>" for values in shown)
    more = f"<p>and {len(rows) - ROWS_MOST} more</p>" if len(rows) > ROWS_MOST else ""
    return f'<div class="wide"><table><tr>{heads}</tr>{lines}</table></div>{more}'


def _cell(name: str, value: Any) -> str:
    kind = ' class="n"' if isinstance(value, int | float) else ""
    return f"<td{kind}>{markup(cell(name, value))}</td>"


def _carried(parts: "Mapping[str, Sequence[Row]]") -> str:
    """Draw which bridge joins which segments, with the frames that it took and put there, and its faults."""
    faults: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in parts["summary"]:
        if row.hub:
            faults[row.gateway, row.hub][row.segment] += row["count"]
    bridges: dict[tuple[str, str], list[svg.Joint]] = defaultdict(list)
    for row in parts["carried"]:
        count = faults[row.gateway, row.hub].pop(row.segment, 0)
        words = f"{svg.short(row.received)} received, {svg.short(row.put)} put"
        more = f", {_faults_of(count)}" if count else ""
        bridges[row.gateway, row.hub].append(svg.Joint(row.segment, words + more, count > 0))
    for bridge, joints in bridges.items():
        if further := sum(faults[bridge].values()):
            joints.append(svg.Joint("", f"further on: {_faults_of(further)}", True))
    most = sorted(bridges, key=lambda one: not any(joint.bad for joint in bridges[one]))[:_BRIDGES_MOST]
    return svg.graph({f"{one[1]} on {one[0]}": bridges[one] for one in sorted(most)})


def _faults_of(count: int) -> str:
    return f"{svg.short(count)} fault{'s' if count > 1 else ''}"


def _timeline(parts: "Mapping[str, Sequence[Row]]") -> str:
    """Plot when faults were, by kind and segment, to a window."""
    begin, seconds = _begin(parts), window_s(parts["capture"])
    length = (max((row.last_ns for row in parts["capture"]), default=begin) - begin) / 1e9
    events: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for row in parts["faults"]:
        start = max(0.0, (row.start_ns - begin) / 1e9)
        end = min(start + seconds, length or seconds)
        events[f"{row.kind}: {row.segment}"].append((start, max(start, end), f"{row['count']} {row.kind}"))
    shown = dict(sorted(events.items())[:_BRIDGES_MOST])
    return svg.spans(shown, length or 1.0, svg.RED, "#8883")


def _begin(parts: "Mapping[str, Sequence[Row]]") -> int:
    return min((row.first_ns for row in parts["capture"]), default=0)


def _faults(parts: "Mapping[str, Sequence[Row]]") -> str:
    totals = Counter[str]()
    for row in parts["summary"]:
        place = f" ({row.gateway})" if row.gateway else ""
        totals[f"{row.kind}, {row.stage}{place}: {row.segment}"] += row["count"]
    return svg.bars([(name, [count]) for name, count in totals.most_common(20)], [""], "")


def _traffic(parts: "Mapping[str, Sequence[Row]]") -> str:
    """Plot the frames a second on each segment."""
    begin, seconds = _begin(parts), window_s(parts["capture"])
    series: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for row in parts["windows"]:
        series[row.bus][round(row.start_ns / 1e9 / seconds)] += max(row.brought, row.put) / seconds
    numbers = [number for windows in series.values() for number in windows]
    every = range(min(numbers, default=0), max(numbers, default=-1) + 1)
    steps = {bus: _steps(series[bus], every, seconds, begin / 1e9) for bus in sorted(series)}
    return svg.lines(steps, "frames/s")


def _steps(rates: Mapping[int, float], every: range, seconds: float, begin_s: float) -> svg.Points:
    """Make a line with a level for each window, from its start to its end. A window without a row is 0."""
    ends = [(number, end) for number in every for end in (number, number + 1)]
    return [(max(0.0, end * seconds - begin_s), rates.get(number, 0.0)) for number, end in ends]


def _times(parts: "Mapping[str, Sequence[Row]]") -> str:
    bars = [
        (f"{row.from_gateway} {row['from']} to {row.to}", [row.p50, row.p90 - row.p50, row.p99 - row.p90])
        for row in parts["hops"]
        if row.kind == "end to end"
    ]
    return svg.bars(bars[:24], ["half", "90 %", "99 %"], "us")


def _services(parts: "Mapping[str, Sequence[Row]]") -> str:
    begin = _begin(parts)
    length = (max((row.last_ns for row in parts["capture"]), default=begin) - begin) / 1e9
    events: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for row in parts["failovers"]:
        start, end = (row.start_ns - begin) / 1e9, (row.end_ns - begin) / 1e9
        word = f"{row['from']} to {row.to or 'nobody'}, {row.gap_ns / 1e6:.1f} ms"
        events[f"{row.hub} onto {row.bus}"].append((start, max(start, end), word))
    return svg.spans(events, length or 1.0)


def _signals(parts: "Mapping[str, Sequence[Row]]") -> str:
    """Plot signals one below the other, with the times of losses (red) and of takeovers (orange)."""
    begin, seconds = _begin(parts), window_s(parts["capture"])
    end = max((row.last_ns for row in parts["capture"]), default=begin)
    series: dict[str, list[svg.Level]] = defaultdict(list)
    for row in parts["signals"]:
        if not all(map(math.isfinite, (row.mean, row.min, row.max))):
            continue
        name = f"{row.pattern}/{row.signal}{f' ({row.unit})' if row.unit else ''}, {row.gateway}, {row.bus}"
        at = max(0.0, (row.start_ns - begin) / 1e9 + seconds / 2)
        series[name].append(svg.Level(at, row.mean, row.min, row.max, row.rows))
    lost = [(row.start_ns, row.start_ns + seconds * 1e9, svg.RED, row.kind) for row in parts["faults"]]
    gone = [(row.start_ns, row.end_ns, svg.COLORS[1], row.hub) for row in parts["failovers"]]
    marks = [
        svg.TimeMark((first - begin) / 1e9, (last - begin) / 1e9, color, word)
        for first, last, color, word in [*lost, *gone][:_MARKS_MOST]
    ]
    return svg.levels(series, marks, (end - begin) / 1e9 or 1.0, (clock(begin), clock(end)), 2 * seconds)


def _media(parts: "Mapping[str, Sequence[Row]]") -> str:
    media = parts["media"]
    bars = [(row.bus, [row.bytes_per_s, row.peak_bytes_per_s - row.bytes_per_s]) for row in media]
    return svg.bars(bars, ["average", "fullest window"], "B/s")


_PLOTS: Final = {
    "carried": _carried, "faults": _timeline, "summary": _faults, "failovers": _services,
    "prefixes": _traffic, "media": _media, "hops": _times, "signals": _signals,
}  # fmt: skip
_PLOTS_ALONE: Final = ("faults", "signals")
"""Plots whose table is not shown."""
_SECTIONS: Final = (
    (
        "Bridges",
        "carried",
        "Segments and the bridges between them. Red: faults that a bridge is named for, also on segments "
        "further on, which frames reach by way of others.",
    ),
    ("Faults", "summary", "Lost: a segment did not get a frame. By place, and how rows were matched."),
    ("When", "faults", "When the frames with faults entered. Times are by the gateways' own clocks."),
    ("Ledgers", "ledger", "Messages that the bridges' own ledgers say they dropped or rejected."),
    ("Ledgers beside traffic", "agreement", "Drops in a bridge's queues, and frames missing there."),
    ("Takeovers and gaps", "failovers", "Orange: nobody served. Times are by the gateways' own clocks."),
    (
        "Signals",
        "signals",
        "The busiest signals, those that change and have a unit first: mean and range of each window. Red: "
        "frames with faults entered. Orange: nobody served. Times are by the gateways' own clocks.",
    ),
    ("Traffic", "prefixes", "Frames on each segment: those it brought and was given, by first token."),
    ("Media", "media", "Bytes a second on each segment."),
    ("Top talkers", "talkers", "Peers that brought most."),
    ("Latency", "hops", "In microseconds, by one clock. End to end: from entering to the other segment."),
    (
        "Clocks",
        "clocks",
        "How far each clock is ahead of another at first, and drifts, by the shortest times there and back.",
    ),
    ("Last values", "last", "The latest frame of each pattern."),
    ("Recorders", "capture", "Rows by gateway and run; missed by their own account; holes in their numbers."),
)
