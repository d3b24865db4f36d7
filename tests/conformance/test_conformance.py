"""The conformance suite over every link of ours, real and simulated."""

from bridges.media import MEDIA
from tests.conformance.makers import MAKERS
from tests.conformance.suite import *  # noqa: F403
from tests.helpers.kinds import has_each

ELSEWHERE = {
    "url": "its links are those of a bus: tcp, ipc, ws and others",
    "ieee802154": "the suite has simulated radios, the virtual machine those of the kernel",
}
SIMULATED = {"tcp", "multicast", "can", "uart", "rs485", "radio", "i2c"}


def test_makers_has_each_medium() -> None:
    names = {maker.name for maker in MAKERS}
    assert len(names) == len(MAKERS)
    firsts = {name.partition("-")[0] for name in names}
    has_each("MAKERS", firsts & {*MEDIA.ours()}, MEDIA.ours() - ELSEWHERE.keys())
    assert {maker.name.split("-")[1] for maker in MAKERS if maker.simulated} == SIMULATED
