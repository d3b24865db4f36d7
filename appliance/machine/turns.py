"""The lateness of a process of this machine, and the lease that a gateway keeps here."""

import time
from typing import Final

from bus.leases.pace import STARTING_S, Pace

_STEP_S: Final = 0.01
_LOOKS: Final = 50
_LATE_TWICE: Final = 2  # a lease so many times the shortest one is worth a warning


def worst_s(looks: int = _LOOKS) -> float:
    """Return by how much the latest of some timers came too late, in seconds. It takes half a second."""
    worst = 0.0
    for _ in range(looks):
        due_s = time.monotonic() + _STEP_S
        time.sleep(_STEP_S)
        worst = max(worst, time.monotonic() - due_s)
    return worst


def lease_words(lease_ms: int | None, most_ms: int, late_s: float) -> tuple[bool, str]:
    """Return whether leases are much longer here than they could be, and words about them.

    `late_s` is what `worst_s` measured; the lengths are those of the topology.
    """
    pace = Pace(lease_ms, most_ms)
    pace.late(0.0, 0.0)
    pace.late(late_s, STARTING_S)
    lasts_ms = pace.judge(STARTING_S)
    text = (
        f"timers of this machine came up to {1000 * late_s:.1f} ms late, so a lease lasts some {lasts_ms} ms"
    )
    long = lasts_ms >= _LATE_TWICE * pace.least_ms
    return long, f"{text}: `run --real-time` keeps leases short on a busy machine" if long else text
