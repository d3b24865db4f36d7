"""The alarms of one gateway, resolved: their records, with the gateways that judge each."""

from dataclasses import dataclass

from topologies.model import Topology
from topologies.model.alarms import AlarmSpec, OutletSpec
from topologies.wiring.alarms import alarms_at, buses_at, linked, outlets_at
from topologies.wiring.filters import tokens


@dataclass(frozen=True, slots=True)
class ResolvedAlarm:
    """An alarm that a gateway judges or hears of.

    `buses` are those of the alarm that run here, by which it is announced. `judges` are the gateways that
    judge its frames, the best first; () for an alarm of links, which each of the `owners` has for itself.
    """

    name: str
    spec: AlarmSpec
    tokens: tuple[int, ...]
    buses: tuple[str, ...]
    judges: tuple[str, ...]
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedAlarms:
    """The alarms of a gateway, and the outlets that these name, by name."""

    system: str
    alarms: tuple[ResolvedAlarm, ...]
    outlets: tuple[tuple[str, OutletSpec], ...]


def resolved_alarms(topology: Topology, gateway: str) -> ResolvedAlarms:
    """Return what a gateway needs for its alarms."""
    alarms = tuple(
        ResolvedAlarm(
            name,
            spec,
            tokens(spec.pattern),
            buses_at(topology, spec, gateway),
            _judges(topology, spec),
            linked(topology, spec),
        )
        for name, spec in alarms_at(topology, gateway)
    )
    return ResolvedAlarms(topology.name, alarms, outlets_at(topology, gateway))


def _judges(topology: Topology, spec: AlarmSpec) -> tuple[str, ...]:
    return () if spec.link is not None else tuple(topology.buses[bus].on for bus in spec.bus)
