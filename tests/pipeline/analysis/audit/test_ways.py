"""The ways of frames over bridges, as topologies in captures tell them."""

import pytest

from pipeline.analysis.audit.ways import of_hubs
from pipeline.analysis.shared import sides
from pipeline.analysis.shared.inventory import Version


@pytest.mark.parametrize("protocol", ["", "lines"])
def test_a_side_with_a_protocol_has_a_way_in_and_a_way_out_and_none_back(protocol: str) -> None:
    far = {"segment": "hall", **({"protocol": protocol} if protocol else {})}
    hubs = {"bridge x": {"pattern": [], "sides": [{"segment": "plant"}, {"segment": "office"}, far]}}
    cuts = sides.cuts([Version("gw", 0, hubs)])
    came, went = ("hall (received)", "hall") if protocol else ("hall", "hall")
    ways = of_hubs(sides.in_topology(hubs, cuts), (), 0)["bridge x"]
    assert {("plant", "office"), ("plant", went), (came, "office")} <= ways
    assert (came, went) not in ways
    assert ((went, "office") in ways) is not bool(protocol)
