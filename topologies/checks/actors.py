"""Search for who can act on devices: from which addresses frames come that leave to one with a protocol.

Pure. Beyond what `exposure` says of each address: here is what somebody can do who is let in there.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bus.key_types import Names
from bus.schema import Where
from bus.transports.options import Tls
from bus.transports.peers import Peer
from bus.urls import HOSTED, is_loopback, split_url
from bus.wire.notation import text_of
from topologies.checks.exposure import proves
from topologies.findings import Finding, note, warning
from topologies.model import Side, Topology
from topologies.wiring.filters import Tokens, related, tokens
from topologies.wiring.flow import Flow
from topologies.wiring.keys import keys_at, keys_of
from topologies.wiring.reach import brokers_of
from topologies.wiring.segments import Joint, Wiring

PATTERNS_MAX = 64
"""The patterns of a side that are followed one by one."""
_NAMED = 6  # patterns and sources in a line


class Source(NamedTuple):
    """A place that frames come from; `is_open` if everybody who reaches it is let in."""

    name: str
    is_open: bool = False


def find_actors(wiring: Wiring) -> Iterator[Finding]:
    """Yield a note for each pattern that can act on a device, with where it can come from; and a warning for
    those that everybody can send."""
    seen = set[tuple[Where, str]]()
    for joint in wiring.joints:
        groups: dict[tuple[Source, ...], list[str]] = {}
        if not (leaving := _leaving(joint.side)):
            continue
        flow = _other_sides(wiring, joint)
        for names in leaving:
            groups.setdefault(_sources(wiring, joint, flow, tokens(names)), []).append(text_of(names))
        for sources, patterns in groups.items():
            for found in _told(joint, patterns, sources):
                if (key := (joint.side.where, found.text)) not in seen:
                    seen.add(key)
                    yield found


def _leaving(side: Side) -> tuple[Names, ...]:
    """Return the patterns of frames that leave to devices which speak a protocol.

    Of very many, as of a range of identifiers, return what they begin with.
    """
    if side.speaks is None:
        return ()
    allowed, denied = side.allowed, side.denied
    if () in (*denied.both, *denied.outward):
        return ()
    found = (*allowed.both, *allowed.outward) or ((),)
    return found if len(found) <= PATTERNS_MAX else (_beginning(found),)


def _beginning(patterns: Sequence[Names]) -> Names:
    """Return what all patterns begin with."""
    first, *others = patterns
    size = len(first)
    for one in others:
        size = min(size, next((n for n in range(size) if one[n : n + 1] != first[n : n + 1]), size))
    return first[:size]


def _other_sides(wiring: Wiring, joint: Joint) -> Flow:
    """Return the links without those of a side, by which nothing comes that leaves there."""
    own = joint.bridge, joint.number
    others = (one for one in wiring.edges if not one.joint or (one.joint.bridge, one.joint.number) != own)
    return Flow(wiring.topology, list(others))


def _told(joint: Joint, found: list[str], sources: tuple[Source, ...]) -> Iterator[Finding]:
    medium, place, patterns = joint.side.medium, joint.side.where, _some(found)
    act = "acts" if len(found) == 1 else "act"
    label = joint.wire if medium is None else medium.label()
    places = _some([one.name for one in sources]) or "nothing in this file"
    yield note(place, f"{patterns} {act} on {label}, and can come from {places}")
    if opened := [one.name for one in sources if one.is_open]:
        text = f"whoever reaches {_some(opened)} can send {patterns}, which {act} on {label}"
        advice = "list who may (peers), ask for certificates, or listen on 127.0.0.1"
        yield warning(place, f"{text}: {advice} (docs/security.md)")


def _some(words: list[str]) -> str:
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more


def _sources(wiring: Wiring, joint: Joint, flow: Flow, pattern: Tokens) -> tuple[Source, ...]:
    """Return where frames that begin with a pattern come from, by other sides of the bridge of a joint."""
    own = joint.bridge, joint.number
    reached = flow.reached(f"bridge {joint.bridge}", pattern, back=True)
    found = [one for node, starts in reached.items() for one in _at_bus(wiring.topology, node, starts)]
    for other in wiring.joints:
        if other.wire in reached and (other.bridge, other.number) != own:
            found += _at_side(wiring.topology, other)
    return tuple(sorted(set(found)))


def _at_bus(topology: Topology, node: str, starts: set[Tokens]) -> Iterator[Source]:
    """Yield the addresses of a bus whose peers may send what begins so."""
    kind, _, name = node.partition(" ")
    bus = topology.buses.get(name) if kind == "bus" else None
    on = "" if bus is None else bus.on
    for listen in () if bus is None else bus.listen:
        peers = [peer for peer in listen.peers or () if _may_send(peer, starts)]
        if listen.peers is None or peers:
            whoever = listen.peers is None or any(peer.name is peer.address is None for peer in peers)
            is_open = whoever and not keys_of(topology, listen) and _is_open(listen.url, listen.tls_of(on))
            listed = f" ({_some([peer.name or peer.address or 'all' for peer in peers])})" if peers else ""
            yield Source(f"{listen.url}{listed}", is_open)


def _may_send(peer: Peer, starts: set[Tokens]) -> bool:
    lists = peer.send
    return lists is None or any(related(tokens(one), start) for one in lists for start in starts)


def _at_side(topology: Topology, joint: Joint) -> Iterator[Source]:
    """Yield what is at the far end of a side that joins no bus of the file."""
    medium = joint.side.medium
    if medium is None:
        return
    brokers = brokers_of(topology, medium)
    for name in brokers:
        broker = topology.brokers.get(name)
        for listen in () if broker is None else broker.listen:
            tls = listen.tls_of(broker.on if broker else "")
            yield Source(f"{listen.url} of broker {name}", _is_open(listen.url, tls))
    hosts = [] if brokers else [host for host in medium.lets_in() if not is_loopback(host)]
    signed = bool(keys_at(topology, joint.side, joint.trunk))
    opened = medium.listens and not signed and _is_open(medium.listens, medium.listens_tls)
    yield Source(medium.label(), bool(opened or hosts))


def _is_open(url: str, tls: Tls | None) -> bool:
    parts = split_url(url)
    return parts.scheme in HOSTED and not is_loopback(parts.host) and not proves(tls)
