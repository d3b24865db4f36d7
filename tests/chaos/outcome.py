"""What one seed shows, with its faults; if it fails, with the fewest that make it fail."""

from collections.abc import Sequence
from typing import Any

from tests.chaos.faults import Fault, draw
from tests.chaos.shrink import shortest
from tests.chaos.trial import kinds, run


def outcome(seed: int, shrink: bool, faults: Sequence[Fault] | None = None) -> dict[str, Any]:
    """Run a seed, with its own faults or others.

    `shrink`: if it fails, find the fewest faults with which it fails in one of these ways.
    """
    faults = draw(seed) if faults is None else faults
    verdict = run(seed, faults)
    failed = set(kinds(verdict))

    def fails(some: Sequence[Fault]) -> bool:
        return not failed.isdisjoint(kinds(run(seed, some)))

    if failed and shrink:
        faults = shortest(faults, fails)
        verdict = run(seed, faults)
    return {**verdict.told(), "faults": [fault.line() for fault in faults]}
