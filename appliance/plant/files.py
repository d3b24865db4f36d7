"""The files of a plant: whether this gateway runs another copy of the topology than most. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from appliance.status.health import Concern

LONG_S: Final = 600.0
"""A roll-out gives gateways different files for a while: another file is a concern after so long."""


class FileWatch:
    """The watch on the file of this gateway, by its hash, and those of the others that are known."""

    def __init__(self) -> None:
        self._since_s: float | None = None

    def concerns(self, own: str, others: Mapping[str, str], now_s: float) -> Iterator[Concern]:
        """Yield the concern that this gateway has run another file for long. `now_s` is monotonic."""
        text = differing(own, others)
        if not text:
            self._since_s = None
            return
        self._since_s = now_s if self._since_s is None else self._since_s
        if now_s - self._since_s >= LONG_S:
            yield Concern("degraded", "file", text)


def differing(own: str, others: Mapping[str, str]) -> str:
    """Return how the hash of the file here is another one than most gateways have; "" if it is theirs.

    Where no hash is that of most, each gateway has another one. An older version says no hash.
    """
    known = {name: file for name, file in others.items() if file}
    away = {name: file for name, file in known.items() if file != own}
    if not own or not away or Counter([own, *known.values()])[own] > len(away):
        return ""
    name, file = next(iter(away.items()))
    more = f" and {len(away) - 1} more" if len(away) > 1 else ""
    return f"another one of the topology than on {name}{more}: {own[:8]} here, {file[:8]} there"
