"""Logs of candump as plans of a replay, without numpy, which the machine has not."""

from collections.abc import Iterator
from pathlib import Path

from appliance.probe.raw import raw_endpoint, translator_of
from appliance.probe.replay import Plan
from bridges.items import FD, CanFrame
from bus.wire.identifier import EXTENDED, REMOTE


def plan_of(log: str, word: str) -> Plan:
    """Return the plan of a log: to an endpoint, each frame at its time."""
    endpoint = raw_endpoint(word)

    def timed() -> Iterator[tuple[int, bytes]]:
        translator = translator_of(endpoint)
        for line in Path(log).read_text().splitlines():
            at, _, frame = line.split()[:3]
            for message in translator.receive([item_of(frame)], 0.0):
                yield round(float(at[1:-1]) * 1e6) * 1000, message

    return Plan(endpoint, timed, frozenset())


def item_of(text: str) -> CanFrame:
    """Return a frame as candump writes it: identifier, `#` or `##` and flags, data or `R` and a length."""
    identifier, _, rest = text.partition("#")
    number = int(identifier, 16) | (EXTENDED if len(identifier) == 8 else 0)
    if rest.startswith("#"):
        return number, bytes.fromhex(rest[2:]), FD | (int(rest[1], 16) & 3) << 2
    if rest.startswith("R"):
        return number | REMOTE, bytes(int(rest[1:] or "0", 16)), 0
    return number, bytes.fromhex(rest), 0
