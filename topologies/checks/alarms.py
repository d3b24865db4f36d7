"""Checks of alarms: their buses, their links and their outlets."""

from collections.abc import Iterator

from bridges.media.medium import Medium
from topologies.findings import Finding, error, warning
from topologies.model import Topology
from topologies.model.alarms import AlarmSpec
from topologies.wiring.events import ALARMS, unheard
from topologies.wiring.segments import Wiring


def find_alarms(wiring: Wiring) -> Iterator[Finding]:
    """Yield what is wrong with alarms, and outlets that none of them uses."""
    topology = wiring.topology
    for name, spec in topology.alarms.items():
        yield from _of_buses(wiring, name, spec)
        yield from _of_link(topology, spec)
    used = {outlet for spec in topology.alarms.values() for outlet in spec.notify}
    for name, outlet in topology.outlets.items():
        if name not in used:
            yield warning(outlet.where, f"no alarm has outlet {name} in its notify")


def _of_buses(wiring: Wiring, name: str, spec: AlarmSpec) -> Iterator[Finding]:
    owners = dict[str, str]()
    for bus in spec.bus:
        gateway = wiring.topology.buses[bus].on
        if gateway in owners:
            text = (
                f"buses {owners[gateway]} and {bus} of alarm {name} both run on {gateway}: name one of them"
            )
            yield error(spec.where, text)
            return
        owners[gateway] = bus
    apart = unheard(wiring, spec.bus, ALARMS) if len(spec.bus) > 1 else []
    if apart and spec.link is None:
        words = f"{', '.join(apart)} and {spec.bus[0]} do not hear each other (no trunk joins them)"
        yield warning(spec.where, f"{words}: the gateways of alarm {name} would tell people twice")


def _of_link(topology: Topology, spec: AlarmSpec) -> Iterator[Finding]:
    if spec.link is None:
        return
    if not any(spec.part in section for section in topology.sections.values()):
        yield error(spec.where, f'no part "{spec.part}", of which link names a link')
    elif spec.part in topology.bridges and spec.end and spec.end not in _ends(topology, spec.part):
        known = ", ".join(_ends(topology, spec.part))
        yield error(spec.where, f'bridge {spec.part} has no side "{spec.end}": there are {known}')


def _ends(topology: Topology, bridge: str) -> list[str]:
    """Return the numbers, and the words for media, by which a side of a bridge can be named."""
    spec = topology.bridges[bridge]
    sides = [(number, side) for gateway in spec.on for number, side in enumerate(spec.at(gateway))]
    numbers = [str(number) for number, _ in sides]
    media = [_word(side.medium) for _, side in sides]
    return list(dict.fromkeys((*numbers, *media)))


def _word(medium: Medium | None) -> str:
    return "bus" if medium is None else medium.key
