"""What a capture says of sides: whether they wait to be dialled, and what is in front of the bridge."""

import pytest

from appliance.parts.bridge import BridgePart
from appliance.parts.described import described
from tests.helpers.appliances import appliance_of
from topologies.loading.loader import loads

TEXT = """
name: t
gateways: {gw: {status: {serve: false}}}
buses: {b: {on: gw}}
bridges: {x: {on: gw, join: [{bus: b}, %s]}}
"""


@pytest.mark.parametrize(
    ("side", "listens"),
    [
        ("{tcp: {host: 127.0.0.1, port: 1, mode: listen}}", True),
        ("{tcp: {host: 127.0.0.1, port: 1}}", False),
        ("{url: {address: 'tcp://127.0.0.1:0', mode: listen}}", True),
        ("{url: 'tcp://127.0.0.1:1'}", False),
        ("{uart: {port: /dev/ttyS9, baud: 9600}}", False),
    ],
)
def test_a_side_that_waits_to_be_dialled_is_marked(side: str, listens: bool) -> None:
    part = appliance_of(loads(TEXT % side), "gw").parts["bridge x"]
    assert isinstance(part, BridgePart)
    assert [one.get("listens", False) for one in described(part)["sides"]] == [False, listens]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("", {}),
        (", strip: 1", {"renamed": True, "strip": 1, "names": [[[], []]]}),
        (", prefix: [7]", {"renamed": True, "names": [[[], [7]]]}),
        (", unchanged: drop, refresh_ms: 1500", {"refresh_ms": 1500}),
    ],
)
def test_what_stands_between_the_wire_of_a_side_and_the_bridge_is_told(settings: str, said: object) -> None:
    side = f"{{tcp: {{host: 127.0.0.1, port: 1}}{settings}}}"
    part = appliance_of(loads(TEXT % side), "gw").parts["bridge x"]
    assert isinstance(part, BridgePart)
    found = described(part)["sides"][1]
    assert {key: value for key, value in found.items() if key != "segment"} == said
