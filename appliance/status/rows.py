"""The row of a link in a status: its counts and its state. Pure."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from bus.hub import Hub, LinkView

if TYPE_CHECKING:
    from bus.transports.binding import Binding


def waiting_rows(hub: Hub, bindings: "Iterable[Binding[Any]]") -> "list[LinkRow]":
    """Return rows for the addresses of a service that are not there yet, and for those that came later."""
    return [LinkRow(hub, one.name, one) for one in bindings if one.waited or one.state == "opening"]


class LinkRow(NamedTuple):
    """A link and its row: the account `name` of `hub`. The names of hub and row identify a link in a process.

    `edges` are the ids of its lines in the picture of the topology. `failure` is why the link could not be
    opened; such a link is closed, and tried again at the next change of the topology. `kept` says of a
    journal what it keeps for each end.
    """

    hub: Hub
    name: str
    link: LinkView
    edges: tuple[str, ...] = ()
    failure: str = ""
    kept: tuple[Mapping[str, Any], ...] = ()

    @property
    def source(self) -> str:
        """The name of the link in events: hub and row, or the row alone if it begins with the hub's name."""
        return self.name if self.name.startswith(self.hub.name) else f"{self.hub.name}/{self.name}"

    @property
    def fault(self) -> str:
        """The last fault as text; "" if there was none."""
        return self.failure or self.link.fault
