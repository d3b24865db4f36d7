"""Checks of a topology that was read without errors. `run` refuses a topology with an error of `check`."""

from collections.abc import Iterator
from os.path import normpath

from bus.errors import TopologyError
from bus.key_types import Names
from bus.names import RESERVED
from bus.wire.pattern import collisions, hexadecimal
from topologies.checks.addresses import find_misplaced
from topologies.checks.alarms import find_alarms
from topologies.checks.budgets import find_overloads
from topologies.checks.certificates import find_lacking
from topologies.checks.confined import find_confined
from topologies.checks.cycles import find_cycles
from topologies.checks.doubles import find_doubles
from topologies.checks.durable import find_unkept
from topologies.checks.exclusive import find_conflicts
from topologies.checks.failover import find_gaps
from topologies.checks.foreign import find_defects
from topologies.checks.idle import find_idle
from topologies.checks.keys import find_unkeyed
from topologies.checks.messages import find_unequal_limits
from topologies.checks.protocols import find_unspoken
from topologies.checks.returns import find_returns
from topologies.checks.senders import find_echoes
from topologies.checks.subjects import find_subjects
from topologies.checks.unrecorded import find_oversized, find_unrecorded
from topologies.findings import Finding, error, note, warning
from topologies.model import BridgeSpec, BusSpec, Side, Topology, gateways_of, running
from topologies.names import used
from topologies.wiring.filters import related, tokens
from topologies.wiring.reach import brokers_of, trunks_of
from topologies.wiring.segments import Joint, Wiring, wired, wires_of


def check(topology: Topology) -> list[Finding]:
    """Return all errors and warnings, in the order of the file."""
    return check_wired(wired(topology))


def check_wired(wiring: Wiring) -> list[Finding]:
    """Return all errors and warnings, as `check` does, of a topology whose map is drawn already."""
    topology = wiring.topology
    found = [
        *find_cycles(wiring),
        *find_conflicts(wiring),
        *find_defects(wiring),
        *find_misplaced(wiring),
        *find_lacking(wiring),
        *find_overloads(wiring),
        *find_confined(wiring),
        *_idle_gateways(topology),
        *_repeated_names(topology),
        *_far_devices(topology),
        *_unwritten(topology),
        *find_returns(wiring),
        *find_gaps(wiring),
        *_trunkless(topology),
        *_nodeless(wiring),
        *_brokerless(wiring),
        *_shared_plain(wiring),
        *find_unequal_limits(topology),
        *find_unkeyed(wiring),
        *find_unkept(wiring),
        *_colliding_tokens(wiring),
        *_beyond_policies(wiring),
        *_unmatched(wiring),
        *_unusual(wiring),
        *find_idle(wiring),
        *find_unspoken(wiring),
        *find_echoes(wiring),
        *find_subjects(wiring),
        *find_unrecorded(wiring),
        *find_oversized(topology),
        *find_alarms(wiring),
        *find_doubles(wiring),
    ]
    return sorted(set(found), key=lambda finding: (finding.line, finding.column, finding.text))


def _idle_gateways(topology: Topology) -> list[Finding]:
    return [
        error(gateway.where, f"nothing runs on gateway {name}")
        for name, gateway in topology.gateways.items()
        if not any(running(specs, name) for specs in topology.sections.values())
    ]


def _repeated_names(topology: Topology) -> Iterator[Finding]:
    """Yield names that are used twice: `run --only NAME` would be ambiguous."""
    seen: dict[str, str] = {}
    for section, entries in topology.sections.items():
        for name, entry in entries.items():
            if name in seen:
                yield error(entry.where, f'"{name}" is the name of something in {seen[name]} already')
            seen.setdefault(name, section)


def _far_devices(topology: Topology) -> Iterator[Finding]:
    """Yield devices that join parts of other gateways."""
    for name, device in topology.devices.items():
        for part in device.joins:
            spec: BusSpec | BridgeSpec = topology.buses.get(part) or topology.bridges[part]
            if device.on not in gateways_of(spec):
                text = f"{part} does not run on {device.on}, where its {device.key} {name} runs"
                yield error(device.where, text)


def _unwritten(topology: Topology) -> Iterator[Finding]:
    """Yield devices that read captures from a directory into which no device of their gateway writes any."""
    devices = topology.devices.values()
    written = {(device.on, normpath(path)) for device in devices for path in device.writes()}
    for device in devices:
        for path in device.reads():
            if (device.on, normpath(path)) not in written:
                text = f"no tap or log of gateway {device.on} writes to {path}"
                yield warning(device.where, f"{text}, from which this {device.key} reads")


def _trunkless(topology: Topology) -> Iterator[Finding]:
    """Yield buses that `trunks` joins, and that cannot be: none of the two can dial the other."""
    for name, bus in topology.buses.items():
        for other, dial in trunks_of(topology, name).items():
            if name == other:
                yield error(bus.where, f"bus {name} names itself in trunks: name other buses")
            elif dial is None:
                text = f"bus {other} listens on no trunk address that gateway {bus.on} can dial"
                yield error(bus.where, f"{text}: give {other} a {{url: ..., trunk: true}} under listen")


def _nodeless(wiring: Wiring) -> Iterator[Finding]:
    topology = wiring.topology
    for joint in wiring.joints:
        medium = joint.side.medium
        node = topology.gateways[joint.gateway].node
        if medium is not None and medium.needs_node and joint.side.speaks is None and node is None:
            text = f"{medium.key.upper()} needs a node id: give gateway {joint.gateway} a node, 1 to 127"
            yield error(joint.side.where, text)


def _brokerless(wiring: Wiring) -> Iterator[Finding]:
    """Yield sides that dial all brokers of the file, where there are none."""
    topology = wiring.topology
    for joint in wiring.joints:
        medium = joint.side.medium
        if medium is not None and medium.tmq_brokers is None and not brokers_of(topology, medium):
            lack = "no broker without TLS" if topology.brokers else "no broker"
            text = f"{medium.key} has {lack}: add one to this file (brokers:), or write an address here"
            yield error(medium.where, f"{text} (brokers: tcp://HOST:PORT)")


def _shared_plain(wiring: Wiring) -> Iterator[Finding]:
    """Yield segments to which several appliances send without envelopes: notes where there can be none."""
    topology = wiring.topology
    users = dict[str, list[Joint]]()
    for joint in wiring.joints:
        # Peers of a bus or broker are apart: only standbys of one bridge can repeat a frame there.
        medium = joint.side.medium
        apart = medium is None or medium.dials or medium.listens or medium.tmq_brokers != ()
        if not apart or len(wiring.candidates[joint.bridge]) > 1:
            users.setdefault(joint.wire, []).append(joint)
    for name, joined in users.items():
        plain = [joint for joint in joined if not joint.trunk]
        if plain and len({joint.gateway for joint in joined}) > 1:
            together = len({wiring.candidates[joint.bridge] for joint in joined}) == 1
            yield _shared(topology, name, joined, plain[0].side, together)


def _shared(topology: Topology, name: str, joined: list[Joint], plain: Side, together: bool) -> Finding:
    """Return the finding of a shared segment. `together`: all sides there stand in for each other."""
    gateways = ", ".join(dict.fromkeys(joint.gateway for joint in joined))
    names = dict.fromkeys(wires_of(topology, joint.side, joint.gateway)[0] for joint in joined)
    one = f"{' and '.join(names)}: one wire," if len(names) > 1 else f"{name} is"
    if plain.medium is not None and plain.medium.plain:
        known = "a standby knows frames there by content and count"
        return note(plain.where, f"{one} shared by {gateways}, and carries no envelopes: {known}")
    if plain.speaks is not None and together:
        return note(plain.where, f"{one} shared by {gateways}, of which one forwards: {_taken_over(plain)}")
    lack = " without trunk" if plain.speaks is None else ", by bridges that do not stand in for each other"
    return warning(plain.where, f"{one} shared by {gateways}{lack}: exactly once cannot be promised")


def _taken_over(side: Side) -> str:
    """Return what a takeover does to the frames for the devices of a side that speaks a protocol."""
    speaks, medium = side.speaks, side.medium
    assert speaks is not None
    assert medium is not None  # a bus has no protocol
    if speaks.asks or not speaks.replay or speaks.deaf or medium.deaf:
        return "at a takeover nothing is sent again, and what was under way is lost"
    return "a standby hears what leaves, and at a takeover sends the rest that is no older than age_ms"


def _beyond_policies(wiring: Wiring) -> Iterator[Finding]:
    """Yield links with a queue that no policy reaches: only a rate limit has an effect there."""
    for side in (joint.side for joint in wiring.joints):
        if side.medium and side.shed and not side.shed.rate and (why := side.medium.unshed()):
            yield error(side.shed.where, f"{why}: state a rate")


def _unusual(wiring: Wiring) -> Iterator[Finding]:
    """Yield settings of media that are allowed and hardly meant."""
    for side in (joint.side for joint in wiring.joints):
        if side.medium is not None and (text := side.medium.unusual()):
            yield warning(side.medium.where, text)


def _unmatched(wiring: Wiring) -> Iterator[Finding]:
    """Yield patterns of sides that no frame matches, because the bridge itself carries others."""
    for joint in wiring.joints:
        side, whole = joint.side, joint.spec.pattern
        for names in _inside(side):
            if not related(tokens(names), tokens(whole)):
                text = f"{_slashed(names)} matches nothing here: the bridge carries {_slashed(whole)} only"
                yield warning(side.where, text)
        yield from _misnamed(side)


def _inside(side: Side) -> Iterator[Names]:
    """Yield the patterns of a side that frames have inside the bridge."""
    for one in (side.allowed, side.denied):
        yield from (*one.both, *one.inward, *one.outward)
    yield from (one.pattern for one in side.limits)
    if side.opaque is not None:
        yield side.opaque
    if side.prefix:
        yield side.prefix


def _misnamed(side: Side) -> Iterator[Finding]:
    """Yield patterns of a side that has other names on its wire, if no frame there has such a name inside."""
    renaming, own = side.renaming, (side.allow, side.deny)
    lists = [names for one in own for names in (*one.both, *one.inward, *one.outward)]
    for names in (side.pattern, *lists, *(one.pattern for one in side.limits)) if renaming.lets_out else ():
        if names and not renaming.outside(names):
            words = ", ".join(renaming.words())
            text = f"{_slashed(names)} is no name in the bridge of what crosses here ({words})"
            yield warning(side.where, f"{text}: patterns are those behind these settings")


def _slashed(names: tuple[int | str, ...]) -> str:
    return "/".join(map(str, names))


def _colliding_tokens(wiring: Wiring) -> Iterator[Finding]:
    """Yield names with one token: an error between patterns, because they cannot be told apart."""
    topology = wiring.topology
    # A number that equals the token of a name is assumed to be intended.
    in_patterns = collisions([*RESERVED, *used(topology)])
    for token, same in in_patterns.items():
        yield error(topology.where, f"{_one_token(same, token)}: rename all but one")
    try:
        in_list = wiring.listed.names
    except TopologyError as fault:
        yield error(topology.names.where, str(fault))
        return
    for token, same in collisions([*RESERVED, *used(topology), *in_list]).items():
        if token not in in_patterns:
            yield warning(topology.names.where, f"{_one_token(same, token)}: it is shown by all of them")


def _one_token(names: list[int | str], token: int) -> str:
    return f"{', '.join(map(repr, names))} are one token, {hexadecimal(token)}"
