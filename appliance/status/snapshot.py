"""The snapshot: everything there is to see of one running process, as a JSON document (docs/status.md)."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from heapq import nlargest
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from appliance.status.rates import Place, Rate
from appliance.status.shape import VERSION
from bus.events import Event
from bus.hub import Hub, Link, Pipe, chain
from bus.ledger import Account, Stats
from bus.names import Names
from bus.transports.budget import PROCESS
from bus.values import Value
from bus.watched import WatchedHub
from bus.wire.frame import unpack

if TYPE_CHECKING:  # most gateways have neither, and start faster without TMQ
    from bus.leases.candidacy import Candidacy
    from bus.leases.group import Lease


class Broker(Protocol):
    """A service that listens for clients of its own. `leases` are those of a broker that has any."""

    @property
    def name(self) -> str: ...
    @property
    def urls(self) -> Sequence[str]: ...
    @property
    def counts(self) -> Mapping[str, int]: ...
    @property
    def rejected(self) -> Mapping[str, int]: ...
    def leases(self) -> "Sequence[Lease]": ...
    def listing(self, most: int) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Return bounded lists of what it knows by their keys in a status: `registrations`, `services`."""

    def last_values(self) -> Mapping[str, Iterable[Value]]:
        """Return the newest frames by the name of their bus, the one heard longest ago first."""


class End(NamedTuple):
    """A link that the picture shows as the edge `id`. A `hub` counts it in rows that begin with `row`."""

    id: str
    hub: str
    row: str
    link: Link


class PartLike(Protocol):
    """A part of a gateway."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def links(self) -> Sequence[Link]: ...
    @property
    def ends(self) -> Sequence[End]: ...


class TapLike(Protocol):
    """A recorder, as `devices.tap.recorder.Recorder`."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def fault(self) -> str: ...
    @property
    def losses(self) -> int: ...
    @property
    def captured(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def ring_bytes(self) -> int: ...
    @property
    def waiting_bytes(self) -> int: ...
    @property
    def progress(self) -> Mapping[str, Any]: ...


PIPES = 64  # of one hub
LISTED = 64  # registrations, services and values
_SHOWN_BYTES = 64  # of the data of a value


@dataclass(frozen=True, kw_only=True)
class View:
    """A process as its status shows it. Functions are asked at each snapshot, since a reload replaces parts.

    `program` is the command. `name` is the topology, or for a command without one, its first address.
    `gateways` has the address of each gateway of the topology by name, `names` those of tokens.
    """

    program: str
    name: str
    gateway: str = ""
    gateways: Callable[[], Mapping[str, str]] = dict
    links: Callable[[], Iterable[Link]] = tuple
    hubs: Callable[[], Iterable[Hub]] = tuple
    brokers: Callable[[], Iterable[Broker]] = tuple
    candidacies: Callable[[], "Iterable[Candidacy]"] = tuple
    events: Callable[[], Iterable[Event]] = tuple
    names: Callable[[], Iterable[str]] = tuple
    started_ns: int = 0
    parts: Callable[[], Iterable[PartLike]] = tuple
    taps: Callable[[], Iterable[TapLike]] = tuple
    silent: Callable[[], Mapping[str, str]] = dict
    page: Callable[[], str] = str
    rates: Callable[[], Mapping[Place, Rate]] = dict
    transit: Callable[[], list[dict[str, Any]]] = list
    drawing: Callable[[], Mapping[str, Any] | None] = lambda: None


def snapshot(view: View, pipes: int = PIPES) -> dict[str, Any]:
    """Return everything there is to see now. Counters are in messages unless a name says bytes.

    `pipes`: so many of each hub.
    """
    rates, brokers, parts = view.rates(), list(view.brokers()), list(view.parts())
    hubs, total = list[dict[str, Any]](), Stats()
    for hub in view.hubs():
        accounts = hub.accounts()
        for account in accounts.values():
            total.add(account.stats)
        hubs.append(_hub(hub, accounts, rates, pipes))
    drawing = view.drawing()
    return {
        "version": VERSION,
        "time_ns": time.time_ns(),
        "started_ns": view.started_ns,
        "pid": os.getpid(),
        "product": _product(),
        "program": view.program,
        "topology": view.name,
        "gateway": view.gateway,
        "gateways": dict(view.gateways()),
        "silent": dict(view.silent()),
        "page": view.page(),
        "parts": [_part(part) for part in parts],
        "ends": [_end(end) for part in parts for end in part.ends],
        "links": [_link(link) for link in view.links()],
        "hubs": hubs,
        "totals": _counted(total) | ({"rates": _sum(rates.values())} if rates else {}),
        "transit": view.transit(),
        "brokers": [_broker(broker) for broker in brokers],
        "candidates": [_candidate(candidacy) for candidacy in view.candidacies()],
        "taps": [_tap(tap) for tap in view.taps()],
        "values": _values(brokers, Names(view.names())),
        "memory": {"held_bytes": PROCESS.held_bytes, "limit_bytes": PROCESS.limit_bytes},
        "names": list(view.names()),
        "events": [event._asdict() for event in view.events()],
    } | ({"drawing": drawing} if drawing is not None else {})


@cache
def _product() -> str:
    from importlib.metadata import version  # late: it takes a while

    return version("buscoupler")


def _part(part: PartLike) -> dict[str, Any]:
    """Return a part with the worst state of its links, by the first link that is in it."""
    order = ("waiting", "opening", "closed", "up")
    worst = min(part.links, key=lambda link: order.index(link.state), default=None)
    state, fault = ("", "") if worst is None else (worst.state, worst.fault)
    return {"id": part.id, "kind": part.kind, "name": part.name} | {
        "state": state, "fault": fault if state != "up" else "",
    }  # fmt: skip


def _end(end: End) -> dict[str, Any]:
    link = end.link
    told = {"state": link.state, "condition": link.condition, "fault": link.fault}
    return {"id": end.id, "hub": end.hub, "row": end.row} | told


def _tap(tap: TapLike) -> dict[str, Any]:
    done = tap.progress
    return {
        "name": tap.name, "state": tap.state, "fault": tap.fault, "losses": tap.losses,
        "captured": tap.captured, "lost": tap.lost, "ring_bytes": tap.ring_bytes,
        "waiting_bytes": tap.waiting_bytes, "written": int(done.get("written", 0)),
        "files": int(done.get("files", 0)), "deleted": int(done.get("deleted", 0)),
    }  # fmt: skip


def _values(brokers: Iterable[Broker], names: Names) -> list[dict[str, Any]]:
    """Return the newest frames of all buses, the newest first."""
    found = [
        (value, bus) for broker in brokers for bus, some in broker.last_values().items() for value in some
    ]
    now_s = time.monotonic()
    return [
        _value(value, bus, names, now_s)
        for value, bus in nlargest(LISTED, found, key=lambda one: one[0].at_s)
    ]


def _value(value: Value, bus: str, names: Names, now_s: float) -> dict[str, Any]:
    _, tokens, data = unpack(value.frame)
    age_ms = int(1000 * (now_s - value.at_s))
    return {"on": bus, "pattern": names.show(tokens), "data": _shown(data), "age_ms": age_ms}


def _shown(data: bytes) -> str:
    """Return data as text if it is some, else in hex; cut to a line."""
    cut = data[:_SHOWN_BYTES]
    text = cut.decode("utf-8", "replace")
    shown = text if text.isprintable() and "\ufffd" not in text else cut.hex(" ")
    return shown + ("…" if len(data) > len(cut) else "")


def _link(link: Link) -> dict[str, Any]:
    told = {"state": link.state, "condition": link.condition, "fault": link.fault, "losses": link.losses}
    return {"name": link.name} | {name: value for name, value in told.items() if value}


def _hub(hub: Hub, accounts: Mapping[str, Account], rates: Mapping[Place, Rate], most: int) -> dict[str, Any]:
    cuts = [cut.pipe.name for cut in hub.cuts] if isinstance(hub, WatchedHub) else []
    links = [_account(hub.name, link, account, rates) for link, account in accounts.items()]
    pipes = nlargest(most, hub.pipes, key=lambda pipe: pipe.stats.received + pipe.stats.sent)
    return {
        "name": hub.name, "cuts": cuts, "links": links,
        "pipes": [counts for pipe in pipes for counts in _pipe(pipe)],
        "more_pipes": len(hub.pipes) - len(pipes),
    }  # fmt: skip


def _pipe(pipe: Pipe) -> list[dict[str, Any]]:
    return [{"name": one.name} | _counted(one.stats) for one in chain(pipe)]


def _counted(stats: Stats) -> dict[str, Any]:
    return {"balance": stats.balance(), **asdict(stats)}


def _account(hub: str, link: str, account: Account, rates: Mapping[Place, Rate]) -> dict[str, Any]:
    """Return the totals of a link since the start: these counters never fall."""
    rate = rates.get((hub, link))
    shown = {} if rate is None else {"rates": rate._asdict()}
    return {"name": link, "live": account.live, "gone": account.gone} | _counted(account.stats) | shown


def _sum(rates: Iterable[Rate]) -> dict[str, float]:
    columns = zip(*rates, strict=True)
    return Rate(*(round(sum(column), 2) for column in columns))._asdict()


def _broker(broker: Broker) -> dict[str, Any]:
    leases = [
        lease._asdict() | {"candidates": [candidate._asdict() for candidate in lease.candidates]}
        for lease in broker.leases()
    ]
    return {
        "name": broker.name,
        "urls": list(broker.urls),
        "counts": dict(broker.counts),
        "rejected": dict(broker.rejected),
        "leases": leases,
        **broker.listing(LISTED),
    }


def _candidate(candidacy: "Candidacy") -> dict[str, Any]:
    candidate = candidacy.candidate
    return {
        "bridge": candidacy.bridge,
        "lease": candidate.bridge,
        "pattern": candidate.tokens,
        "name": candidate.name,
        "role": candidate.state,
        "ready": candidate.ready,
        "cause": candidate.cause,
        "epoch": candidate.epoch,
        "holder": candidate.holder_name,
        "takeovers": candidacy.takeovers,
        "brokers": [view.reach for view in candidate.views],
    }
