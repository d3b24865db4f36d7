"""Taps that would record less than they are told to: wires that are not there, messages that are too long."""

import pytest

from bridges.media import MEDIA
from tests.helpers.kinds import has_each
from tests.topologies.support import GATEWAY, warnings

REGISTERS = "{registers: {registers: [{target: 0x48, register: 0, type: u16, pattern: t}]}}"
SPOKEN = {
    "can": "can: {channel: can0}, protocol: raw",
    "uart": "uart: {port: /dev/ttyX}, protocol: nmea",
    "tcp": "tcp: {host: 127.0.0.1, port: 5}, protocol: nmea",
    "udp": "udp: {host: 127.0.0.1, port: 5}, protocol: {cannelloni: {root: car}}",
    "i2c": f"i2c: {{bus: 1}}, protocol: {REGISTERS}",
}
TMQ = {
    "can": "can: {channel: can0}",
    "uart": "uart: {port: /dev/ttyX}",
    "tcp": "tcp: {host: 127.0.0.1, port: 5}",
    "udp": "udp: {host: 127.0.0.1, port: 5}",
    "i2c": "i2c: {bus: 1, targets: [0x42]}",
    "multicast": "multicast: {group: 239.1.1.1, port: 9, interface: eth0}",
    "ieee802154": "ieee802154: {interface: wpan0, pan: 1}",
    "url": "url: tcp://127.0.0.1:5",
    "tmq": "tmq: {brokers: [tcp://127.0.0.1:5]}",
}
FILE = """buses: {{p: {{on: gw}}, q: {{on: gw}}}}
bridges: {{b: {{on: gw, join: [bus: p, {{{0}}}]}}}}
devices: {{recorder: {{on: gw, tap: [{1}], directory: /var/x{2}}}}}
"""


def told(side: str, taps: str = "p, b", more: str = ", wire: true") -> list[str]:
    found = warnings(GATEWAY + FILE.format(side, taps, more))
    return [one for one in found if "wire has no effect" in one]


def test_this_has_each_medium() -> None:
    kinds = {key: kind for key, kind in MEDIA.known() if key in MEDIA.ours()}
    has_each("TMQ", TMQ, kinds)
    has_each("SPOKEN", SPOKEN, (key for key, kind in kinds.items() if kind.items))


@pytest.mark.parametrize("key", SPOKEN)
def test_a_side_with_a_protocol_is_enough(key: str) -> None:
    assert told(SPOKEN[key]) == []
    (text,) = told(SPOKEN[key], "p")  # no bridge at all
    assert text.startswith("wire has no effect in tap recorder: on gw none of p is a bridge")


@pytest.mark.parametrize("key", TMQ)
def test_a_side_with_tmq_is_enough_or_the_reason_is_told(key: str) -> None:
    kind = dict(MEDIA.known())[key]
    found = told(TMQ[key])
    assert bool(found) == (kind.tmq_items is None)
    assert all(one.endswith(f"; {key}: {kind.unrecorded}") for one in found), found
    assert told(TMQ[key], more="") == []


def test_a_bus_has_no_wire() -> None:
    assert len(told("bus: q")) == 1


LONG = """buses: {{p: {{on: gw, listen: [{{url: "tcp://0.0.0.0:5555"{0}}}]{1}}}, q: {{on: gw}}}}
devices: {{recorder: {{on: gw, tap: [p, q], directory: /var/x{2}}}}}
"""


@pytest.mark.parametrize("link", [True, False])
@pytest.mark.parametrize(
    ("most_mib", "queue_mib", "loses"),
    [(1, None, False), (7, None, False), (8, None, True), (2, 5, False), (2, 4, True), (9, 27, False)],
)
def test_a_tap_whose_queue_does_not_take_the_longest_messages(
    link: bool, most_mib: int, queue_mib: int | None, loses: bool
) -> None:
    """A tap of two parts has 16 MiB; a message has room where it fits twice."""
    limits = f", queue_bytes: {20 << 20}, message_bytes: {most_mib << 20}"
    queue = "" if queue_mib is None else f", queue_bytes: {queue_mib << 20}"
    found = warnings(GATEWAY + LONG.format(limits if link else "", "" if link else limits, queue))
    text = f"messages of bus p may have {most_mib << 20} bytes, of which tap recorder loses some"
    told = [one for one in found if text in one]
    assert bool(told) == loses
    assert not loses or f"at least {3 * most_mib << 20}" in told[0]
