"""The conformance suite over every link of ours, real and simulated."""

from tests.conformance.makers import MAKERS
from tests.conformance.suite import *  # noqa: F403


def test_every_link_is_here_and_every_medium_is_simulated() -> None:
    names = {maker.name for maker in MAKERS}
    assert len(names) == len(MAKERS)
    simulated = {maker.name for maker in MAKERS if maker.simulated}
    for medium in ("tcp", "multicast", "can", "uart", "rs485", "i2c"):
        assert any(name.startswith(f"simulated-{medium}") for name in simulated)
        assert any(name.startswith(medium) for name in names)
