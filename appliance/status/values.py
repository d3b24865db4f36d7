"""The newest frames in a status: the last values of devices and of buses."""

import time
from collections.abc import Iterable
from heapq import nlargest
from typing import Final

from appliance.status.shape import Record
from bus.names import Names
from bus.quantity.known import Quantities
from bus.report import LISTED, READINGS, Report
from bus.values import Value
from bus.wire.frame import unpack

_READ: Final = 512  # values of devices
_SHOWN_BYTES: Final = 64  # of the data of a value
_EXACT = 1 << 53  # larger numbers are not exact in JSON


def values_of(reports: Iterable[Report], names: Names, quantities: Quantities) -> Record:
    """Return the newest frames: of the sides of devices in their order, then of buses, the newest first."""
    found = [
        (value, on, report.kind == READINGS)
        for report in reports for on, some in report.values.items() for value in some
    ]  # fmt: skip
    now_s = time.monotonic()
    read = [one for one in found if one[2]]
    newest = nlargest(LISTED, (one for one in found if not one[2]), key=lambda one: one[0].at_s)
    shown = [_value(value, on, names, quantities, now_s) for value, on, _ in (*read[:_READ], *newest)]
    return {"values": shown, "more_values": max(0, len(read) - _READ)}


def _value(value: Value, bus: str, names: Names, quantities: Quantities, now_s: float) -> Record:
    """Return a frame as its status has it; of a quantity, the value with unit and range, and as a number."""
    _, tokens, data = unpack(value.frame)
    age_ms = int(1000 * (now_s - value.at_s))
    row: Record = {"on": bus, "pattern": names.show(tokens), "data": _shown(data), "age_ms": age_ms}
    quantity = quantities.find(tokens)
    if quantity is None:
        return row
    from bus.quantity.telling import told  # late: whoever knows a quantity has loaded it

    text, number = told(quantity, data)
    known = {"number": number, "low": quantity.low, "high": quantity.high}
    shown = {key: one for key, one in known.items() if one is not None and abs(one) <= _EXACT}
    row |= {"unit": quantity.unit} | shown
    return row | ({"data": _shown(text.encode())} if text else {})


def _shown(data: bytes) -> str:
    """Return data as text if it is printable, else in hex; cut to a line."""
    cut = data[:_SHOWN_BYTES]
    text = cut.decode("utf-8", "replace")
    shown = text if text.isprintable() and "\ufffd" not in text else cut.hex(" ")
    return shown + ("…" if len(data) > len(cut) else "")
