"""Taps of wires that have no wire to record: a warning, on every medium that takes a protocol and for TMQ."""

import pytest

from bridges.items import RECORDED
from bridges.media import MEDIA
from tests.topologies.support import GATEWAY, warnings

REGISTERS = "{registers: {registers: [{target: 0x48, register: 0, type: u16, pattern: t}]}}"
SIDES = {
    "can": "can: {channel: can0}, protocol: raw",
    "uart": "uart: {port: /dev/ttyX}, protocol: nmea",
    "tcp": "tcp: {host: 127.0.0.1, port: 5}, protocol: nmea",
    "udp": "udp: {host: 127.0.0.1, port: 5}, protocol: {cannelloni: {root: car}}",
    "i2c": f"i2c: {{bus: 1}}, protocol: {REGISTERS}",
}
TMQ = {
    "can": "can: {channel: can0}",
    "multicast": "multicast: {group: 239.1.1.1, port: 9, interface: eth0}",
    "bus": "bus: q",
}
FILE = """buses: {{p: {{on: gw}}, q: {{on: gw}}}}
bridges: {{b: {{on: gw, join: [bus: p, {{{0}}}]}}}}
devices: {{recorder: {{on: gw, tap: [{1}], directory: /var/x{2}}}}}
"""


def told(side: str, taps: str = "p, b", more: str = ", wire: true") -> list[str]:
    found = warnings(GATEWAY + FILE.format(side, taps, more))
    return [one for one in found if "wire has no effect" in one]


def test_every_medium_that_takes_a_protocol_is_here() -> None:
    assert {key for key, kind in MEDIA.known() if kind.items} == SIDES.keys()


@pytest.mark.parametrize("key", SIDES)
def test_a_side_with_a_protocol_whose_items_are_recorded_is_enough(key: str) -> None:
    kind = dict(MEDIA.known())[key]
    assert (told(SIDES[key]) == []) == RECORDED.issuperset(kind.items)
    (text,) = told(SIDES[key], "p")  # no bridge at all
    assert text.startswith("wire has no effect in tap recorder: on gw none of p is a bridge")


@pytest.mark.parametrize("key", TMQ)
def test_sides_that_speak_tmq_have_no_items(key: str) -> None:
    assert len(told(TMQ[key])) == 1
    assert told(TMQ[key], more="") == []
