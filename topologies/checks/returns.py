"""Search for devices that would hear their own messages: each answer would be the next question."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from bus.wire.notation import text_of
from devices.device import Flow as Said
from topologies.findings import Finding, error
from topologies.wiring.filters import Tokens, related, tokens
from topologies.wiring.flow import Flow
from topologies.wiring.graph import reached, ways_of
from topologies.wiring.segments import Wiring


class _Way(NamedTuple):
    """A way by which a message of one device, the speaker, comes to a device, the same or another."""

    speaker: str
    says: Said
    hearer: str
    hears: Said


def find_returns(wiring: Wiring) -> Iterator[Finding]:
    """Yield an error for each thing said that comes back, by whichever buses, bridges and devices."""
    ways = list(_ways(wiring))
    steps = ways_of({(way.speaker, way.hearer) for way in ways})
    seen = set[Said]()
    for way in ways:
        if way.says not in seen and way.speaker in reached(way.hearer, steps):
            seen.add(way.says)
            yield _finding(way)


def _finding(way: _Way) -> Finding:
    said, heard = text_of(way.says.pattern), text_of(way.hears.pattern)
    back = "comes back" if way.speaker == way.hearer else "goes round"
    text = f"{said} on bus {way.says.bus} {back}: device {way.hearer} hears {heard} on bus {way.hears.bus}"
    return error(way.says.where, f"{text}; say it under a pattern that is not heard there")


def _ways(wiring: Wiring) -> Iterator[_Way]:
    """Yield all ways of messages between devices. Any candidate of a bridge may forward."""
    topology = wiring.topology
    links = Flow(topology, wiring.edges)

    @cache
    def buses(bus: str, frame: Tokens) -> dict[str, set[Tokens]]:
        return links.reached(f"bus {bus}", frame)

    def is_heard(said: Said, heard: Said) -> bool:
        pair = tokens(said.pattern), tokens(heard.pattern)
        starts = {max(pair, key=len)} if related(*pair) else set[Tokens]()
        starts |= {pair[0]} if links.renamed else set()
        there = (one for start in starts for one in buses(said.bus, start).get(f"bus {heard.bus}", ()))
        return any(related(one, pair[1]) for one in there)

    hears = [(name, flow) for name, device in topology.devices.items() for flow in device.hears()]
    for speaker, device in topology.devices.items():
        for said in device.says():
            for hearer, heard in hears:
                if is_heard(said, heard):
                    yield _Way(speaker, said, hearer, heard)
