"""`python -m benchmarks.media`: measure the cost of each medium's format, and the throughput of its line."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks import sections
from benchmarks.command import Command, run_as_command
from benchmarks.formats import Cost, measure
from benchmarks.lines import LINES, SIZES, Carried, Sent, multicast
from benchmarks.report import machine

REPEATS = 3
ENOUGH = 0.99

HEAD = """Machine: {machine}.

| Line kept full | Frame | Limit, frames/s | Carried | CPU a frame, us | of one core, line full | |
|---|---:|---:|---:|---:|---:|---|
{lines}

| Multicast against `sendto` | Link, CPU us | Loop, CPU us | Link / loop, frames a second |
|---:|---:|---:|---:|
{sent}

| Format, CPU us | {sizes} |
|---|{rule}
{costs}
"""


def _lines(found: Iterable[Carried]) -> Iterator[str]:
    for c in found:
        verdict = "reached" if c.carried >= ENOUGH else "MISSED"
        yield (
            f"| {c.line} | {c.size} B | {c.limit_fps:,.0f} | {c.carried:.1%} | {c.cpu_us:.0f} "
            f"| {c.core:.0%} | {verdict} |"
        )


def _sent(found: Iterable[Sent]) -> Iterator[str]:
    for s in found:
        yield f"| {s.size} B | {s.link_us:.2f} | {s.loop_us:.2f} | {s.link_fps / s.loop_fps:.1f} |"


def _costs(found: Sequence[Cost]) -> Iterator[str]:
    for name in dict.fromkeys(cost.name for cost in found):
        cells = [_pair(cost) for cost in found if cost.name == name]
        yield f"| {name} | {' | '.join(cells)} |"


def _pair(cost: Cost) -> str:
    return (
        f"{cost.encode_us:.2f} / {cost.decode_us:.2f}" if cost.decode_us > 0.01 else f"{cost.encode_us:.2f}"
    )


def page(lines: Sequence[Carried], sent: Sequence[Sent], costs: Sequence[Cost]) -> str:
    sizes = list(dict.fromkeys(cost.size for cost in costs))
    return HEAD.format(
        machine=machine(),
        lines="\n".join(_lines(lines)),
        sent="\n".join(_sent(sent)),
        sizes=" | ".join(f"{size} B, encode / decode" for size in sizes),
        rule="---:|" * len(sizes),
        costs="\n".join(_costs(costs)),
    )


def middle(runs: Sequence[Carried]) -> Carried:
    """Return the medians of several runs of one line."""
    carried, cpu_us = (median(getattr(run, name) for run in runs) for name in ("carried", "cpu_us"))
    return runs[0]._replace(carried=carried, cpu_us=cpu_us)


def middle_sent(runs: Sequence[Sent]) -> Sent:
    return Sent(runs[0].size, *(median(run[n] for run in runs) for n in range(1, len(Sent._fields))))


def main() -> int:
    command = Command("benchmarks.media", __doc__)
    command.add_output("the page", sections.PAGE)
    output: Path = command.parse_args().output
    lines = [middle([work(size) for _ in range(REPEATS)]) for work in LINES.values() for size in SIZES]
    sent = [middle_sent([multicast(size) for _ in range(REPEATS)]) for size in SIZES]
    sections.write("media", "benchmarks.media", page(lines, sent, measure()), output)
    return 0 if all(line.carried >= ENOUGH for line in lines) else 1


if __name__ == "__main__":
    run_as_command(main)
