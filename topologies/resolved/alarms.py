"""The alarms of one gateway, resolved: their records, with the gateways that judge each. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from topologies.model import Topology, gateways_of
from topologies.model.alarms import AlarmSpec, OutletSpec
from topologies.wiring.filters import tokens


@dataclass(frozen=True, slots=True)
class ResolvedAlarm:
    """An alarm that a gateway judges or hears of.

    `buses` are those of the alarm that run here, by which it is announced. `judges` are the gateways that
    judge its frames, the best first; () for an alarm of links, which each gateway has for itself.
    """

    name: str
    spec: AlarmSpec
    tokens: tuple[int, ...]
    buses: tuple[str, ...]
    judges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResolvedAlarms:
    """The alarms of a gateway, and the outlets that these name, by name."""

    system: str
    alarms: tuple[ResolvedAlarm, ...]
    outlets: tuple[tuple[str, OutletSpec], ...]


def resolved_alarms(topology: Topology, gateway: str) -> ResolvedAlarms:
    """Return what a gateway needs for its alarms."""
    alarms = tuple(_alarms(topology, gateway))
    named = dict.fromkeys(outlet for alarm in alarms for outlet in alarm.spec.notify)
    return ResolvedAlarms(topology.name, alarms, tuple((name, topology.outlets[name]) for name in named))


def _alarms(topology: Topology, gateway: str) -> Iterator[ResolvedAlarm]:
    for name, spec in topology.alarms.items():
        owners = {bus: topology.buses[bus].on for bus in spec.bus}
        buses = tuple(bus for bus, owner in owners.items() if owner == gateway)
        judges = () if spec.link is not None else tuple(owners.values())
        if buses or gateway in linked(topology, spec):
            yield ResolvedAlarm(name, spec, tokens(spec.pattern), buses, judges)


def linked(topology: Topology, spec: AlarmSpec) -> tuple[str, ...]:
    """Return the gateways that have the links of an alarm; () for an alarm of frames."""
    parts = (section[spec.part] for section in topology.sections.values() if spec.part in section)
    return () if spec.link is None else tuple(name for part in parts for name in gateways_of(part))
