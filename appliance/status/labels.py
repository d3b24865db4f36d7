"""The labels of links: their names for people, as in the file. Pure.

An account of a bridge has its side in the name, `1 can/can:can0`. Metrics and captures keep that name, as no
other link of the bridge has it; people see `can:can0`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from appliance.status.rates import RowKey
from appliance.status.rows import LinkRow, bare, joined
from appliance.status.view import ShownPart

_NONE: Final[Mapping[str, str]] = {}


def titles(parts: Iterable[ShownPart]) -> dict[str, str]:
    """Return what the other half of a bridge's patch is called, by its bare name: the bridge."""
    return {part.name: f"{part.kind} {part.name}" for part in parts if part.kind == "bridge"}


class Labels:
    """The labels of all accounts of a process, from the rows of its links.

    `parts` has what a link without a row is called, by its bare name: the other half of a patch has none.
    """

    def __init__(self, rows: Iterable[LinkRow], parts: Mapping[str, str] = _NONE) -> None:
        self._of: dict[RowKey, str] = {(row.hub.name, row.name): row.shown for row in rows}
        self._parts = parts

    def of(self, hub: str, name: str) -> str:
        """Return the label of the account `name` of a hub."""
        link, _, more = name.rpartition(" ")
        if (hub, name) in self._of:
            return self._of[hub, name]
        if (hub, link) in self._of:  # such as its spool
            return f"{self._of[hub, link]} {more}"
        return self._parts.get(bare(name), bare(name))

    def source(self, hub: str, name: str) -> str:
        """Return how events name an account."""
        return joined(hub, self.of(hub, name))
