"""Each medium of a topology becomes its link, with the settings of the file."""

from typing import Any

import pytest

from appliance.parts.side import medium_link
from bridges.media import MEDIA
from bridges.media.shed_pipe import ShedLink
from bridges.media.shedding import Shed
from tests.helpers.kinds import has_each
from topologies.checks.checker import check
from topologies.loading.loader import loads

SIDES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("uart: {port: /dev/x, baud: 9600, echo: true}", "UartLink", "uart:/dev/x", {"baud": 9600, "echo": True}),
    ("uart: {port: /dev/x, rs485: {nodes: [3, 7]}}", "Rs485Link", "rs485:/dev/x", {"port": "/dev/x"}),
    (
        "can: {channel: can0, node: 9, subject: 77}",
        "CanLink",
        "can:socketcan:can0",
        {"node": 9, "subject": 77, "channel": "can0"},
    ),
    ("i2c: {bus: 1, targets: [0x42, 0x43]}", "I2cLink", "i2c:1", {"bus": 1, "targets": (0x42, 0x43)}),
    (
        "multicast: {group: 'ff15::9', port: 9943, interface: lo, hops: 3}",
        "MulticastLink",
        "multicast:[ff15::9]:9943@lo",
        {"port": 9943, "interface": "lo", "hops": 3},
    ),
    (
        "ieee802154: {interface: wpan0, pan: 0xbeef}",
        "RadioLink",
        "ieee802154:wpan0",
        {"pan": 0xBEEF, "datagram_bytes": 110},
    ),
    ("tcp: {host: 127.0.0.1, port: 9, mode: listen}", "TcpFramesLink", "tcp:127.0.0.1:9", {"mode": "listen"}),
    ("tcp: {host: 127.0.0.1, port: 9, framing: cobs}", "TcpFramesLink", "tcp:127.0.0.1:9", {}),
    (
        "tmq: {brokers: 'tcp://127.0.0.1:9', subscribe: [fridge], host: 127.0.0.1, patterns: 7}",
        "TmqLink",
        "tmq:127.0.0.1:9",
        {"subscribe": (("fridge",),), "publish": ((),), "patterns": 7},
    ),
    (
        "udp: {host: 127.0.0.1, port: 9, queue_bytes: 4096}",
        "UdpLink",
        "udp:127.0.0.1:9",
        {"port": 9, "queue_bytes": 4096},
    ),
    ("url: tcp://127.0.0.1:9", "DialLink", "tcp://127.0.0.1:9", {"address": "tcp://127.0.0.1:9"}),
]


def test_sides_has_each_medium() -> None:
    has_each("SIDES", (side.partition(":")[0] for side, *_ in SIDES), MEDIA.ours())


@pytest.mark.parametrize(("side", "kind", "name", "settings"), SIDES, ids=lambda value: str(value)[:24])
def test_a_side_becomes_its_link(side: str, kind: str, name: str, settings: dict[str, Any]) -> None:
    text = "\n".join(
        (
            "name: t",
            "gateways: {gw: {address: 127.0.0.1, node: 1}}",
            "buses: {b: {on: gw, listen: tcp://127.0.0.1:1}}",
            "bridges:",
            "  x:",
            "    on: gw",
            "    join:",
            "      - bus: b",
            f"      - {side}",
        )
    )
    topology = loads(text, "t.yaml")
    assert not [finding for finding in check(topology) if finding.level == "error"]
    made = topology.bridges["x"].at("gw")[1].medium
    assert made is not None
    link: Any = medium_link(made, None, topology.gateways["gw"].node)
    assert link.name == name
    link = link.link if isinstance(link, ShedLink) else link  # it may be given a policy at run time
    assert kind == "DialLink" or link.options == made
    assert {field: getattr(made, field) for field in settings} == settings
    assert type(link).__name__ == kind


@pytest.mark.parametrize("side", [side for side, *_ in SIDES])
def test_a_policy_reaches_the_link_of_every_medium(side: str) -> None:
    text = f"""
name: t
gateways: {{gw: {{address: 127.0.0.1, node: 1}}}}
buses: {{b: {{on: gw, listen: tcp://127.0.0.1:1}}}}
bridges:
  x:
    on: gw
    join:
      - bus: b
      - {side}
        shed: {{policy: conflate, age_ms: 250, rate: 10}}
"""
    topology = loads(text, "t.yaml")
    assert not [finding for finding in check(topology) if finding.level == "error"]
    spec = topology.bridges["x"].at("gw")[1]
    assert spec.medium is not None
    made: Any = medium_link(spec.medium, spec.shed, topology.gateways["gw"].node)
    queue_bytes = spec.medium.queue_bytes or 1 << 20
    assert made.shed == Shed("conflate", queue_bytes, 0.25, 10, stated=True)
