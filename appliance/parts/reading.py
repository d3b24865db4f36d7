"""The last values that the devices of a bridge's side said, for the status page and metrics."""

import time
from collections.abc import Iterable

from bridges.side import Side
from bus.hub import Pipe
from bus.quantity.quantity import Quantity
from bus.quantity.readings import Readings
from bus.report import READINGS, Report
from bus.wire.batch import Batch, payloads


class Reading:
    """A tap of what comes in by a side, before any rule of failover: a standby shows values, too."""

    __slots__ = ("_on", "_side", "values")

    def __init__(self, side: Side, on: str, quantities: Iterable[Quantity]) -> None:
        self._side, self._on, self.values = side, on, Readings(quantities)
        side.tap(self._hear)

    def _hear(self, batch: Batch, _: Pipe | None) -> None:
        self.values.take(payloads(batch), time.monotonic())

    def report(self) -> Report:
        """Return what a status shows: the last values, how many they are, and how many are left out."""
        kept = self.values
        counts = {"values": len(kept), "left_out": kept.left_out}
        return Report(f"values of {self._on}", READINGS, counts=counts, values={self._on: kept.read()})

    def close(self) -> None:
        """Stop listening. Idempotent."""
        self._side.untap(self._hear)
