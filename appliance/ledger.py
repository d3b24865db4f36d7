"""The ledger as text: for each pipe, what the hub offered = sent + dropped by reason + queued."""

from collections.abc import Iterable

from bus.balance import imbalances
from bus.hub import Hub, chain
from bus.ledger import Stats


def ledger(hubs: Iterable[Hub]) -> str:
    """Return a line for each pipe, indented for those behind another, and for each account out of balance."""
    hubs = list(hubs)
    lines, faults = [], imbalances(hubs)
    for hub in hubs:
        for pipe in hub.pipes:
            for depth, one in enumerate(chain(pipe)):
                lines.append(f"  {'  ' * depth}{hub.name or 'bus'} | {one.name}: {line(one.stats)}")
    verdict = f"{len(faults)} accounts do NOT balance" if faults else "balanced"
    head = f"ledger of {sum(len(hub.pipes) for hub in hubs)} live pipes: {verdict}"
    return "\n".join([head, *(f"  {fault}" for fault in faults), *lines])


def line(stats: Stats) -> str:
    """Return one pipe's counts; reasons only if there are any."""
    text = f"in {stats.received}, out {stats.sent} of {stats.offered}, queued {stats.queued}"
    for word, counts in (("dropped", stats.dropped), ("rejected", stats.rejected)):
        if counts:
            text += f", {word} {reasons(counts)}"
    return text


def reasons(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
