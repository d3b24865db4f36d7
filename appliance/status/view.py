"""The view of a process: its parts and surroundings, from which its status is made."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from appliance.status.health import Health
from appliance.status.rates import Rate, RowKey
from appliance.status.rows import LinkRow
from appliance.version import version
from bus.events import Event
from bus.hub import Hub, Link
from bus.quantity.known import Quantities
from bus.report import Reporter

if TYPE_CHECKING:  # most gateways have neither, and start faster without
    from bus.leases.candidacy import Candidacy
    from bus.wire.x509 import Span
    from devices.tap.recorder import Recorder


Curves = Callable[[str, str], Callable[[], Mapping[str, Any]]]
"""A function that takes the curves of a kind and a span, and returns one that makes their document, for any
thread. It raises KeyError for another kind or span."""


def no_curves(kind: str, span: str) -> Callable[[], Mapping[str, Any]]:
    """Raise KeyError: a process without a page keeps none."""
    raise KeyError(kind, span)


class Plant(Protocol):
    """The knowledge that a gateway has of its plant."""

    def shown(self, status: Mapping[str, Any]) -> dict[str, Any]:
        """Return the verdict and the gateways, as a status has them. `status` is that of this gateway."""

    def marks(self) -> dict[str, Any]:
        """Return the marks that other gateways have said of their own things in the picture."""


Acknowledge = Callable[[str, str, str], list[str]]
"""A function that acknowledges an alarm by name: what of it ("" for all), and by whom. It returns what was
raised, and raises KeyError for an alarm that is not there."""


def no_alarms(name: str, of: str, by: str) -> list[str]:
    """Raise KeyError: a process without a topology has none."""
    raise KeyError(name)


class Beside(NamedTuple):
    """The role of a bridge that all its gateways forward at once.

    `lease` is the name of its group, or its own; `down` the first of its links that is down, "" if none is.
    """

    bridge: str
    lease: str
    pattern: tuple[int, ...]
    gateway: str
    down: str


class ShownPart(Protocol):
    """A part of a gateway, as a status shows it: `id` is that of its node in the picture of the topology."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def links(self) -> Sequence[Link]: ...
    @property
    def hubs(self) -> Sequence[Hub]: ...
    @property
    def rows(self) -> Sequence[LinkRow]: ...
    @property
    def services(self) -> Sequence[Reporter]: ...
    @property
    def recorders(self) -> "Sequence[Recorder]": ...
    @property
    def candidacy(self) -> "Candidacy | None": ...
    @property
    def beside(self) -> Beside | None: ...


class Besides(NamedTuple):
    """The hubs, links and services of a process that belong to none of its parts."""

    hubs: Sequence[Hub] = ()
    rows: Sequence[LinkRow] = ()
    services: Sequence[Reporter] = ()


class Around(NamedTuple):
    """The topology around a process.

    `gateways` has their addresses by name, `silent` why some of them count as silent. `names` are those of
    tokens. `page` is the URL of the status page, and `drawing` the picture. `copies` has the ids of bridges
    in the picture by lease and gateway: the bridges of a group have one lease. `quantities` are those of
    values. `digest` is the hash of the file. `lasting` has the times of files of certificates.
    """

    gateways: Mapping[str, str] = {}
    silent: Mapping[str, str] = {}
    names: Sequence[str] = ()
    page: str = ""
    drawing: Mapping[str, Any] | None = None
    copies: Mapping[tuple[str, str], str] = {}
    quantities: Quantities = Quantities()
    lasting: Mapping[str, "Span"] = {}
    digest: str = ""


class Sampled(NamedTuple):
    """The results of watching a process: its last events, the rates of links, and transit times.

    `down_ms` says of links that are not up how long that is so. `health` is None if nobody judges it, and
    `alarms` are rows as of a status.
    """

    events: Sequence[Event] = ()
    rates: Mapping[RowKey, Rate] = {}
    transit: Sequence[Mapping[str, Any]] = ()
    down_ms: Mapping[RowKey, int] = {}
    health: Health | None = None
    alarms: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, kw_only=True)
class View:
    """A process as its status sees it. Functions are asked at each snapshot, since a reload replaces parts.

    `program` is the command, and `product` the version of the program. `name` is the topology, or for a
    command without one, its first address. `prepare` makes what takes long at the first snapshot: call it
    in a thread before one. `around` takes how long ago brokers of this process heard a claim of each
    gateway, in milliseconds.
    """

    program: str
    name: str
    gateway: str = ""
    started_ns: int = 0
    product: str = field(default_factory=version)
    prepare: Callable[[], object] = lambda: None
    parts: Callable[[], Iterable[ShownPart]] = tuple
    besides: Callable[[], Besides] = Besides
    around: Callable[[Mapping[str, int]], Around] = lambda _: Around()
    sampled: Callable[[], Sampled] = Sampled
    curves: Curves = no_curves
    plant: Plant | None = None
    acknowledge: Acknowledge = no_alarms
