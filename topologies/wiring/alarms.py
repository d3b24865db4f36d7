"""The alarms of each gateway: which it judges or hears of, and by which outlets it tells people. Pure."""

from collections.abc import Iterator

from topologies.model import Topology, gateways_of
from topologies.model.alarms import AlarmSpec, OutletSpec


def alarms_at(topology: Topology, gateway: str) -> Iterator[tuple[str, AlarmSpec]]:
    """Yield the alarms that a gateway judges or hears of, by name."""
    for name, spec in topology.alarms.items():
        if buses_at(topology, spec, gateway) or gateway in linked(topology, spec):
            yield name, spec


def buses_at(topology: Topology, spec: AlarmSpec, gateway: str) -> tuple[str, ...]:
    """Return the buses of an alarm that a gateway runs."""
    return tuple(bus for bus in spec.bus if topology.buses[bus].on == gateway)


def linked(topology: Topology, spec: AlarmSpec) -> tuple[str, ...]:
    """Return the gateways that have the links of an alarm; () for an alarm of frames."""
    parts = (section[spec.part] for section in topology.sections.values() if spec.part in section)
    return tuple(name for part in parts for name in gateways_of(part))


def outlets_at(topology: Topology, gateway: str) -> tuple[tuple[str, OutletSpec], ...]:
    """Return the outlets that the alarms of a gateway name, by name."""
    named = dict.fromkeys(name for _, spec in alarms_at(topology, gateway) for name in spec.notify)
    return tuple((name, topology.outlets[name]) for name in named)
