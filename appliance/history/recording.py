"""The recording of a gateway's curves: it samples once a second, and makes the document of some of them."""

from collections.abc import Callable, Iterable, Mapping
from math import isnan
from typing import Any, Final

from appliance.history.rings import SCALES, Curve, Kind, Rings
from appliance.history.samples import KINDS, Accounts, Sampler
from appliance.status.labels import Labels
from appliance.status.rates import Rate, RowKey

CURVES: Final = 16
"""The most curves of one answer; those with the largest values are chosen."""
_LOOK_S: Final = 1.0


class Recording:
    """The curves of a gateway, in `rings`."""

    def __init__(self) -> None:
        self.rings = Rings(KINDS)
        self._sampler = Sampler()
        self._at_s = self._due_s = float("-inf")

    def look(
        self,
        now_s: float,
        time_ns: Callable[[], int],
        rates: Mapping[RowKey, Rate],
        accounts: Accounts,
        transit: Callable[[], Iterable[Mapping[str, Any]]],
        values: Callable[[], Iterable[Mapping[str, Any]]],
        labels: Callable[[], Labels],
    ) -> None:
        """Once a second, take a sample. `now_s` is monotonic; the functions are asked for a sample only."""
        if now_s >= self._due_s:
            span_s, self._at_s, self._due_s = now_s - self._at_s, now_s, now_s + _LOOK_S
            made = self._sampler.samples(rates, accounts, transit(), values(), labels, span_s)
            self.rings.sample(time_ns(), made)

    def picked(self, kind: str, span: str) -> Callable[[], dict[str, Any]]:
        """Return a function that makes the document of the curves of now. Any thread may call that.

        Raises KeyError for an unknown kind or span.
        """
        found, scale = self.rings.kinds[kind], SCALES[span]
        curves, more = self.rings.curves(kind, scale, CURVES)
        end_ns, left_out = self.rings.end_ns(scale), self.rings.left_out + self._sampler.left_out
        about = {"span": span, "step_s": scale.step_s, "end_ns": end_ns, "more": more + left_out}
        return lambda: _document(found, curves) | about


def _document(kind: Kind, curves: Iterable[Curve]) -> dict[str, Any]:
    shown = [{"name": curve.name, "points": list(map(_rounded, curve.points))} for curve in curves]
    return {"kind": kind.name, "unit": kind.unit, "about": kind.doc, "curves": shown}


def _rounded(point: float) -> float | None:
    return None if isnan(point) else float(f"{point:.5g}")
