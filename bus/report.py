"""The report of a service, which a status shows beside the ledgers of its pipes. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from bus.values import Value

if TYPE_CHECKING:
    from bus.leases.group import Lease

LISTED: Final = 64
"""The most rows in each of the `lists` of a report."""
READINGS: Final = "readings"
"""The kind of a report of what devices say: all its values are shown, in their order."""


class Report(NamedTuple):
    """One service as a status shows it.

    `kind` is `broker`, `page`, `values`, `readings`, or the kind of a device. `urls` are the addresses where
    it listens for clients of its own, with the ports that were bound. `counts` are plain numbers by name, and
    `rejected` counts by reason what clients said and the service refused. `leases` are those of a broker of
    bridges.
    `lists` has up to `LISTED` rows under each key of a status (docs/status.md), such as `registrations`.
    `values` has the newest frames by the name of their bus, the one heard longest ago first.
    """

    name: str
    kind: str
    urls: Sequence[str] = ()
    counts: Mapping[str, int] = {}
    rejected: Mapping[str, int] = {}
    leases: "Sequence[Lease]" = ()
    lists: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    values: Mapping[str, Iterable[Value]] = {}


class Reporter(Protocol):
    """A service that a status shows."""

    def report(self) -> Report:
        """Return the report as of now."""
