"""The report on bridges: it turns samples into Markdown, and is independent of the measurements."""

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.bridges.systems import BridgeLoad, BridgeSystem
from benchmarks.report import MILLION, Results, Target, machine, spread, table
from benchmarks.run import Sample

NEEDED_FPS = 500_000
TARGETS = (
    Target(
        "TCP to TCP trunk, filter and envelopes: 0.5 M frames/s in", "trunk", NEEDED_FPS, field="in_per_s"
    ),
    Target("The same with denied patterns: 0.5 M frames/s in", "trunk-deny", NEEDED_FPS, field="in_per_s"),
    Target(
        "TCP to multicast, filter and envelopes: 0.5 M frames/s in", "multicast", NEEDED_FPS, field="in_per_s"
    ),
    Target(
        "TCP to multicast with denied patterns: 0.5 M frames/s in",
        "multicast-deny",
        NEEDED_FPS,
        field="in_per_s",
    ),
)


def page(
    samples: Sequence[Sample],
    loads: Sequence[BridgeLoad],
    systems: Sequence[BridgeSystem],
    command: str,
    duration: str,
) -> str:
    """Return the section of the page about bridges."""
    results = Results(_with_capacity(samples))
    parts = [
        f"Command: `{command}` ({duration}).\nMachine: {machine()}.\n",
        targets(results),
        "Our figure divided by the other's, in the same repeat: frames a second of one core.\n\n"
        + compared(results, loads, systems),
    ]
    parts += [f"**{load.title}**\n\n{load_table(results, load, systems)}" for load in loads]
    return "\n".join(parts)


def _with_capacity(samples: Sequence[Sample]) -> Iterator[Sample]:
    for sample in samples:
        cpu_us = sample.values.get("cpu_us")
        yield sample._replace(values=sample.values | {"per_core": MILLION / cpu_us}) if cpu_us else sample


def targets(results: Results) -> str:
    """Return the table of targets: the result in M frames/s, and reached or missed, by the median."""
    rows = []
    for target in TARGETS:
        values = results.compared(target)
        per_core = results.values(target.load, "ours", "per_core")
        word = "not measured"
        if values:
            word = "reached" if median(values) >= target.bound else "**missed**"
        rows.append((target.text, millions(values), millions(per_core), word))
    return table(("Target", "M in/s", "a core", ""), rows)


def millions(values: Sequence[float]) -> str:
    return spread([value / MILLION for value in values])


def compared(results: Results, loads: Sequence[BridgeLoad], systems: Sequence[BridgeSystem]) -> str:
    others = [system for system in systems if system.name != "ours"]
    rows = []
    for load in loads:
        ratios = [
            spread(results.compared(Target("", load.name, 0, system.name, field="per_core")))
            for system in others
        ]
        if set(ratios) - {"–"}:
            rows.append((load.title, *ratios))
    return table(("Load", *(f"ours ÷ {system.label}" for system in others)), rows)


def load_table(results: Results, load: BridgeLoad, systems: Sequence[BridgeSystem]) -> str:
    """Return the table of one load, a row for each system, then its losses by reason and its trouble."""
    measured = [system for system in systems if results.of(load.name, system.name)]
    rows = [_row(results, load.name, system) for system in measured]
    text = table(
        ("System", "M in/s", "M out/s", "M in/s a core", "CPU µs/frame", "of its core", "lost %"), rows
    )
    for system in measured:
        text += "".join(f"\n{system.label}: {words}.\n" for words in remarks(results, load.name, system.name))
    return text


def _row(results: Results, load: str, system: BridgeSystem) -> tuple[str, ...]:
    def values(field: str) -> list[float]:
        return results.values(load, system.name, field)

    speeds = [millions(values(field)) for field in ("in_per_s", "out_per_s", "per_core")]
    lost = [abs(100 * value) for value in values("loss")]
    return (system.label, *speeds, spread(values("cpu_us")), spread(values("core")), spread(lost))


def remarks(results: Results, load: str, system: str) -> Iterator[str]:
    """Yield remarks on a system beside its numbers: trouble, wrong frames, drops by reason."""
    if trouble := results.trouble(load, system):
        yield trouble
    fields = dict.fromkeys(name for sample in results.of(load, system) for name in sample.values)
    words = {
        "errors": "wrong frames",
        "unbalanced": "pipes that do not balance",
        "closed": "receivers closed",
    }
    words |= {"missing": "gaps in the sequence", "overflow": "datagrams lost in the receiver's own buffer"}
    words |= {name: f"{name} (all repeats)" for name in fields if name.startswith(("dropped ", "rejected "))}
    for field, text in words.items():
        if total := sum(results.values(load, system, field)):
            yield f"{total:.0f} {text}"
