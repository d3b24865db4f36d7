"""The snapshot: everything there is to see of one running process, as a JSON document (docs/status.md)."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from appliance.status.client import VERSION
from bus.events import Event
from bus.hub import Hub, Link, chain
from bus.ledger import Account
from bus.transports.budget import PROCESS
from bus.watched import WatchedHub

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


def snapshot(view: View) -> dict[str, Any]:
    """Return everything there is to see now. Counters are in messages unless a name says bytes."""
    return {
        "version": VERSION,
        "time_ns": time.time_ns(),
        "started_ns": view.started_ns,
        "pid": os.getpid(),
        "program": view.program,
        "topology": view.name,
        "gateway": view.gateway,
        "gateways": dict(view.gateways()),
        "links": [_link(link) for link in view.links()],
        "hubs": [_hub(hub) for hub in view.hubs()],
        "brokers": [_broker(broker) for broker in view.brokers()],
        "candidates": [_candidate(candidacy) for candidacy in view.candidacies()],
        "events": [event._asdict() for event in view.events()],
        "names": list(view.names()),
        "memory": {"held_bytes": PROCESS.held_bytes, "limit_bytes": PROCESS.limit_bytes},
    }


def _link(link: Link) -> dict[str, Any]:
    told = {"state": link.state, "condition": link.condition, "fault": link.fault, "losses": link.losses}
    return {"name": link.name} | {name: value for name, value in told.items() if value}


def _hub(hub: Hub) -> dict[str, Any]:
    cuts = [cut.pipe.name for cut in hub.cuts] if isinstance(hub, WatchedHub) else []
    pipes = [
        {"name": one.name, "balance": one.stats.balance(), **asdict(one.stats)}
        for pipe in hub.pipes
        for one in chain(pipe)
    ]
    links = [_account(link, account) for link, account in hub.accounts().items()]
    return {"name": hub.name, "cuts": cuts, "links": links, "pipes": pipes}


def _account(link: str, account: Account) -> dict[str, Any]:
    """Return the totals of a link since the start: these counters never fall."""
    stats = account.stats
    counts = {"live": account.live, "gone": account.gone, "balance": stats.balance()}
    return {"name": link} | counts | asdict(stats)


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
