"""The picture of a comparison: grouped bars of delivered messages, and the round trips beside them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import MILLION, Results
from benchmarks.run import Load
from benchmarks.systems import System

COLOURS = {
    "ours": "#c8102e",
    "nng": "#9dbbdc",
    "nng-one": "#6f97c4",
    "nanomsg": "#3f6ea3",
    "nats": "#4c9f70",
    "relay": "#9a9a9a",
}
CHARTED = {
    "64B": "64 B",
    "1KiB": "1 KiB",
    "mixed": "mixed\noctaves",
    "uniform": "mixed\nuniform",
    "64KiB": "64 KiB",
    "64B-x16": "64 B\n16 receivers",
    "64B-single": "64 B\none a write",
    "64B-stuck": "64 B\none stuck",
}
BAR = 0.82


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _draw_speed(axes: Any, results: Results, names: Sequence[str], systems: Sequence[System]) -> None:
    width = BAR / len(systems)
    for i, system in enumerate(systems):
        speeds = [results.middle(name, system.name, "delivered_per_s") for name in names]
        heights = [(speed or 0.0) / MILLION for speed in speeds]
        places = [x + (i - (len(systems) - 1) / 2) * width for x in range(len(names))]
        bars = axes.bar(places, heights, width, label=system.label, color=COLOURS[system.name])
        labels = [_short(height) if height else "" for height in heights]
        axes.bar_label(bars, labels, fontsize=7, padding=2, rotation=90)
    axes.set(yscale="log", ylabel="million messages delivered a second", title="Delivered (higher is better)")
    axes.set_xticks(range(len(names)), [CHARTED[name] for name in names])
    axes.margins(y=0.12)
    axes.legend(ncols=len(systems), loc="lower center", bbox_to_anchor=(0.5, 1.06), frameon=False)


def _draw_round_trip(axes: Any, results: Results, systems: Sequence[System]) -> None:
    for i, system in enumerate(systems):
        p50, p99 = (results.middle("roundtrip", system.name, field) for field in ("p50_us", "p99_us"))
        if p50 is None or p99 is None:
            continue
        axes.bar_label(axes.bar(i, p50, BAR, color=COLOURS[system.name]), [f"{p50:.0f}"], label_type="center")
        axes.plot([i - BAR / 2, i + BAR / 2], [p99, p99], color="black", linewidth=1.5)
        axes.annotate(f"{p99:.0f}", (i, p99), ha="center", va="bottom", fontsize=8)
    axes.set(ylabel="µs", title="Round trip: p50 (bar), p99 (line)\nlower is better", ylim=(0, None))
    axes.set_xticks(range(len(systems)), [s.label.replace(" ", "\n") for s in systems], fontsize=8)
    axes.margins(y=0.1)


def picture(results: Results, loads: Sequence[Load], systems: Sequence[System], path: Path) -> None:
    """Write a PNG to `path`. Loads that were not measured are left out."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(15, 5.5), width_ratios=(7, 3), layout="constrained"
    )
    names = [load.name for load in loads if load.name in CHARTED]
    if names:
        _draw_speed(left, results, names, systems)
    _draw_round_trip(right, results, systems)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
