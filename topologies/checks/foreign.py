"""Search for protocols, media and devices of other distributions whose classes cannot be imported: a gateway
with one of them would not start, or its link not open."""

from collections.abc import Iterator
from typing import NamedTuple

from bridges.media import MEDIA
from bridges.protocols import PROTOCOLS
from bus.defects import unmade
from bus.schema import Where
from devices import DEVICES
from topologies.findings import Finding, error
from topologies.wiring.segments import Wiring


class _Foreign(NamedTuple):
    """A class that runs a record of another distribution."""

    what: str
    name: str
    where: Where


def find_defects(wiring: Wiring) -> Iterator[Finding]:
    """Yield an error for each class that cannot be imported."""
    told = set[str]()
    for one in _foreign(wiring):
        if one.name and one.name not in told and (why := unmade(one.what, one.name)):
            yield error(one.where, why)
        told.add(one.name)


def _foreign(wiring: Wiring) -> Iterator[_Foreign]:
    for side in (joint.side for joint in wiring.joints):
        if side.medium is not None and side.medium.key not in MEDIA.ours():
            yield _Foreign("the medium", side.medium.LINK, side.medium.where)
        if side.speaks is not None and side.speaks.key not in PROTOCOLS.ours():
            yield _Foreign("the protocol", side.speaks.MAKE, side.speaks.where)
    for device in wiring.topology.devices.values():
        if device.key not in DEVICES.ours():
            yield _Foreign("the device", device.SERVICE, device.where)
