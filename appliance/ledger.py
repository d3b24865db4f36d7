"""The ledger as text: for each pipe, what the hub offered = sent + dropped by reason + queued."""

from collections.abc import Iterable

from bus.hub import Hub, Stats


def ledger(hubs: Iterable[Hub]) -> str:
    """One line a pipe, and whether all of them balance."""
    lines, unbalanced = [], 0
    for hub in hubs:
        for pipe in hub.pipes:
            lines.append(f"  {hub.name or 'bus'} | {pipe.name}: {line(pipe.stats)}")
            unbalanced += pipe.stats.balance() != 0
    verdict = f"{unbalanced} pipes do NOT balance" if unbalanced else "balanced"
    return "\n".join([f"ledger of {len(lines)} live pipes: {verdict}", *lines])


def line(stats: Stats) -> str:
    """One pipe's integers; reasons only where there are any."""
    text = f"in {stats.received}, out {stats.sent} of {stats.offered}, queued {stats.queued}"
    for word, reasons in (("dropped", stats.dropped), ("rejected", stats.rejected)):
        if reasons:
            text += f", {word} " + ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    return text
