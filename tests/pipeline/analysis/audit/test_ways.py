"""The ways of frames over bridges, as topologies in captures tell them."""

import pytest

from pipeline.analysis.audit.ways import of_hubs


@pytest.mark.parametrize("renamed", [False, True])
def test_no_frame_is_looked_for_beyond_a_side_that_gives_it_another_name(renamed: bool) -> None:
    far = {"segment": "hall", **({"renamed": True} if renamed else {})}
    hubs = {"bridge x": {"pattern": [], "sides": [{"segment": "plant"}, {"segment": "office"}, far]}}
    ways = of_hubs(hubs, (), 0)["bridge x"]
    assert ("plant", "office") in ways
    assert (("plant", "hall") in ways) is not renamed
    assert (("hall", "office") in ways) is not renamed
