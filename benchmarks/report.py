"""The report: it turns samples into Markdown, and is independent of the measurements."""

import os
import platform
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.run import IDLE_PEERS, Load, Sample
from benchmarks.systems import System

MILLION = 1e6
STUCK_MIB = 16.0  # twice the queue of one peer
NNG = "nng+nng-one"
FIELDS = {"roundtrip": "p50_us", "idle": "idle_mib"}


class Target(NamedTuple):
    """A target: the ratio of `field` for ours under `load` to that of `system` under `base`, against `bound`.

    `system` may be several, joined by "+": then the best of them in each repeat. Without a `system` the value
    itself is compared. `above` says whether the ratio must be above `bound`.
    """

    text: str
    load: str
    bound: float
    system: str = ""
    base: str = ""
    field: str = "delivered_per_s"
    above: bool = True
    difference: bool = False


TARGETS = (
    Target("64 B, batched, 3 receivers: 40 × nng_device at its best", "64B", 40, NNG),
    Target("64 B: 3 × nats-server", "64B", 3, "nats"),
    Target("64 B: 0.6 of the byte relay", "64B", 0.6, "relay"),
    Target("1 KiB: 7 × nng_device at its best", "1KiB", 7, NNG),
    Target("1 KiB: 2 × nats-server", "1KiB", 2, "nats"),
    Target("1 KiB: 0.85 of the byte relay", "1KiB", 0.85, "relay"),
    Target("Mixed sizes (octaves): 20 × nng_device at its best", "mixed", 20, NNG),
    Target("One message a write, 64 B: 1 × nats-server", "64B-single", 1, "nats"),
    Target("64 B, one peer stuck: 0.95 of the rate without it", "64B-stuck", 0.95, "ours", "64B"),
    Target("1 KiB, one peer stuck: 0.95 of the rate without it", "1KiB-stuck", 0.95, "ours", "1KiB"),
    Target(
        f"One peer stuck: at most {STUCK_MIB:.0f} MiB more (peak)",
        "1KiB-stuck",
        STUCK_MIB,
        "ours",
        "1KiB",
        "peak_rss_mib",
        above=False,
        difference=True,
    ),
    Target("Round trip p50: no worse than nng_device", "roundtrip", 1, "nng", field="p50_us", above=False),
    Target(f"{IDLE_PEERS} idle peers: less than 100 MiB", "idle", 100, field="idle_mib", above=False),
)


class Results:
    """Samples by load, system and repeat."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = {(s.load, s.system, s.repeat): s for s in samples}

    def of(self, load: str, system: str) -> list[Sample]:
        return [s for (a, b, _), s in self._samples.items() if (a, b) == (load, system)]

    def values(self, load: str, system: str, field: str) -> list[float]:
        return [s.values[field] for s in self.of(load, system) if field in s.values]

    def middle(self, load: str, system: str, field: str) -> float | None:
        """Return the median over the repeats that worked, or None if none did."""
        values = self.values(load, system, field)
        return median(values) if values else None

    def trouble(self, load: str, system: str) -> str:
        """Return why a measurement failed, shortened to one line; "" if all worked."""
        texts = [s.trouble for s in self.of(load, system) if s.trouble]
        return re.sub(r"\s+", " ", texts[0])[-120:].replace("|", "/") if texts else ""

    def compared(self, target: Target) -> list[float]:
        """Return the target's value for each repeat in which both sides worked."""
        ours = {s.repeat: s.values.get(target.field) for s in self.of(target.load, "ours")}
        if not target.system:
            return [value for value in ours.values() if value is not None]
        theirs, best = dict[int, float](), max if target.above else min
        for name in target.system.split("+"):
            for s in self.of(target.base or target.load, name):
                if (value := s.values.get(target.field)) is not None:
                    theirs[s.repeat] = best(value, theirs.get(s.repeat, value))
        both = [(value, theirs[n]) for n, value in ours.items() if value is not None and n in theirs]
        if target.difference:
            return [a - b for a, b in both]
        return [a / b for a, b in both if b]


def _number(value: float | None, scale: float = 1.0) -> str:
    if value is None:
        return "–"
    scaled = value / scale
    if scaled and abs(scaled) < 1:
        return f"{scaled:.2g}" if abs(scaled) < 0.1 else f"{scaled:.2f}"
    return f"{scaled:.0f}" if abs(scaled) >= 100 else f"{scaled:.3g}"


def spread(values: Sequence[float]) -> str:
    """Return median, smallest and largest as `3.1 (2.9..3.4)`, or a dash without values."""
    if not values:
        return "–"
    if len(values) == 1:
        return _number(values[0])
    return f"{_number(median(values))} ({_number(min(values))}..{_number(max(values))})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are aligned right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def targets(results: Results) -> str:
    """Return the table of targets: the result, and reached or missed, by the median."""
    rows = []
    for target in TARGETS:
        values = results.compared(target)
        word = "not measured"
        if values:
            good = median(values) >= target.bound if target.above else median(values) <= target.bound
            word = "reached" if good else "**missed**"
        rows.append((target.text, spread(values), word))
    return table(("Target", "Measured", ""), rows)


Column = tuple[str, Callable[[str, str], str]]


def _columns(results: Results, load: Load) -> list[Column]:
    def value(field: str, scale: float = 1.0) -> Callable[[str, str], str]:
        return lambda name, system: _number(results.middle(name, system, field), scale)

    def percent(name: str, system: str) -> str:
        lost = results.middle(name, system, "loss")
        return "–" if lost is None else f"{abs(lost) * 100:.1f}"

    def ratio(name: str, system: str) -> str:
        field = FIELDS.get(load.size, "delivered_per_s")
        return "" if system == "ours" else spread(results.compared(Target("", name, 0, system, field=field)))

    if load.size == "roundtrip":
        cells = [
            ("p50 µs", value("p50_us")),
            ("p99 µs", value("p99_us")),
            ("CPU µs/message", value("cpu_us")),
        ]
        return [*cells, ("p50 ours ÷ it", ratio)]
    if load.size == "idle":
        return [("growth MiB", value("idle_mib")), ("resident MiB", value("rss_mib")), ("ours ÷ it", ratio)]
    speed = [("M delivered/s", value("delivered_per_s", MILLION)), ("ours ÷ it", ratio), ("lost %", percent)]
    return [*speed, ("CPU µs/message", value("cpu_us")), ("peak MiB", value("peak_rss_mib"))]


def load_table(results: Results, load: Load, systems: Sequence[System]) -> str:
    """Return the table of one load, a row for each system with the ratio of ours to it, and their trouble."""
    columns = _columns(results, load)
    rows = [
        [system.label] + [cell(load.name, system.name) for _, cell in columns]
        for system in systems
        if results.of(load.name, system.name)
    ]
    text = table(["System"] + [title for title, _ in columns], rows)
    for system in systems:
        if trouble := results.trouble(load.name, system.name):
            text += f"\n{system.label}: {trouble}\n"
        for field, words in (("errors", "wrong messages"), ("closed", "receivers closed by the device")):
            if found := sum(results.values(load.name, system.name, field)):
                text += f"\n{system.label}: {found:.0f} {words}.\n"
    return text


def machine() -> str:
    """Describe the machine in one line: processor, cores, memory, kernel, interpreter."""
    info = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.+)", info)
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    cores = len(os.sched_getaffinity(0))
    return (
        f"{model.group(1) if model else platform.machine()}, {cores} cores, {memory_gib:.0f} GiB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def markdown(
    results: Results, loads: Sequence[Load], systems: Sequence[System], command: str, duration: str
) -> str:
    """Return the section of the page about the raw device."""
    parts = [
        f"Command: `{command}` ({duration}).\nMachine: {machine()}.\n",
        targets(results),
        "![Delivered messages a second and round trip](performance.png)\n",
        '"ours ÷ it" is our figure divided by that system\'s figure in the same repeat.\n',
    ]
    parts += [f"**{load.title}**\n\n{load_table(results, load, systems)}" for load in loads]
    return "\n".join(parts)
