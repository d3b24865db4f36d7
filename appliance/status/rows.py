"""The row of a link in a status: its counts and its state. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from bus.hub import Hub, LinkView

if TYPE_CHECKING:
    from bus.transports.binding import Binding

Far = Literal["outside", "plant", "inside", "broker"]
"""The far end of a link. `outside`: devices, programs and other systems. `plant`: its other gateways.
`inside`: other parts of this gateway. `broker`: whom a broker here serves."""
FARS: Final[tuple[Far, ...]] = get_args(Far)
_SIDE: Final = re.compile(r"(?:plain|trunk|\d+ [a-z0-9_]+)/")


def bare(name: str) -> str:
    """Return the name of an account without that of its side: `can:can0` of `1 can/can:can0`."""
    found = _SIDE.match(name)
    return name[found.end() :] if found else name


def joined(hub: str, label: str) -> str:
    """Return the names of a hub and of a link in one; the link's alone if that has the hub's in front."""
    return label if label == hub or label.startswith(f"{hub}: ") else f"{hub}/{label}"


def waiting_rows(hub: Hub, bindings: "Iterable[Binding[Any]]") -> "list[LinkRow]":
    """Return rows for the addresses of a service that are not there yet, and for those that came later."""
    return [LinkRow(hub, one.name, one) for one in bindings if one.waited or one.state == "opening"]


class LinkRow(NamedTuple):
    """A link and its row: the account `name` of `hub`. The names of hub and row identify a link in a process.

    `edges` are the ids of its lines in the picture of the topology. `failure` is why the link could not be
    opened; such a link is closed, and tried again at the next change of the topology. `kept` says of a
    journal what it keeps for each end. `label` is what people call the link, as in the file; without one, its
    bare name. `far` says who is at its other end. `which` tells it from others of its label (`apart`).
    """

    hub: Hub
    name: str
    link: LinkView
    edges: tuple[str, ...] = ()
    failure: str = ""
    kept: tuple[Mapping[str, Any], ...] = ()
    label: str = ""
    far: Far = "outside"
    which: str = ""

    @property
    def called(self) -> str:
        """The name of the link for people, which others of its hub may have too."""
        return self.label or bare(self.name)

    @property
    def shown(self) -> str:
        """The name of the link for people, which no other of its hub has."""
        return f"{self.called}, {self.which}" if self.which else self.called

    @property
    def source(self) -> str:
        """The name of the link in events: that of its hub, and its own."""
        return joined(self.hub.name, self.shown)

    @property
    def fault(self) -> str:
        """The last fault as text; "" if there was none."""
        return self.failure or self.link.fault


def apart(rows: Iterable[LinkRow]) -> list[LinkRow]:
    """Return rows, of which those that people would call the same are told apart by their names."""
    found, names = list(rows), defaultdict[tuple[str, str], set[str]](set)
    if len(found) < 2 or len({(row.hub.name, row.called) for row in found}) == len(found):
        return found
    for row in found:
        names[row.hub.name, row.called].add(row.name)
    return [
        row._replace(which=_which(row)) if len(names[row.hub.name, row.called]) > 1 else row for row in found
    ]


def _which(row: LinkRow) -> str:
    """Return the bare name of a row; if it is called that, its side in the bridge."""
    name = bare(row.name)
    return name if name != row.called else row.name.removesuffix(f"/{name}")
