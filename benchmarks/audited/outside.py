"""Programs at the doors of a plant, which speak and listen.

They do not depend on the gateways, and connect again after each fault.
"""

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from appliance.demo.nullmodem import NullModem
from benchmarks.audited.plant import Plant
from bridges.media.tmq.link import TmqLink
from bridges.media.tmq.medium import Tmq
from bus.hub import Hub, Link
from bus.wire.frame import PUB, is_frame, pack, unpack
from bus.wire.notation import pattern_of
from tests.appliance.examples import doors
from tests.helpers.peers import BareEar, until

if TYPE_CHECKING:
    from bus.wire.batch import Batch

PATTERNS: Final = ("motor/speed", "fridge/temp", "oven/temp")
_OF: Final = {
    "fridge": ("fridge/temp", "fridge/alert"),
    "cold-chain": ("fridge/temp",),
    "failover": ("motor",),
}
_GREETING_S: Final = 1.0


class Door(BareEar):
    """A program at a door. `said`: when data were said, and with which pattern; `times`: when they came."""

    def __init__(self, name: str, link: Link) -> None:
        super().__init__(Hub(name))
        self.name, self.way = name, link
        self.said = dict[bytes, tuple[float, str]]()
        self.times = defaultdict[bytes, list[float]](list)
        self.down_s = list[tuple[float, bool]]()

    def send(self, batch: "Batch") -> None:
        before = len(self.heard)
        super().send(batch)
        now_s = asyncio.get_running_loop().time()
        for frame in filter(is_frame, self.heard[before:]):
            self.times[bytes(unpack(frame).data)].append(now_s)
        del self.heard[:]

    @property
    def is_open(self) -> bool:
        return len(self.hub.pipes) > 1 and self.way.state == "up"

    def look(self) -> None:
        """Note whether the door has its peer."""
        if not self.down_s or self.down_s[-1][1] != self.is_open:
            self.down_s.append((asyncio.get_running_loop().time(), self.is_open))

    def was_open(self, from_s: float, to_s: float) -> bool:
        """Return whether the door had its peer all the time."""
        before = [is_open for at_s, is_open in self.down_s if at_s <= from_s]
        return bool(before and before[-1]) and all(
            is_open for at_s, is_open in self.down_s if from_s < at_s <= to_s
        )

    def tell(self, number: int, pattern: str) -> None:
        """Say a frame, if there is somebody to say it to."""
        if self.is_open:
            data = f"{self.name} {number}".encode()
            self.said[data] = asyncio.get_running_loop().time(), pattern
            self.say(pack(PUB, pattern_of(pattern), data))


def patterns(name: str) -> tuple[str, ...]:
    """Return what is said at the doors of a topology."""
    return _OF.get(name, PATTERNS)


async def opened(plant: Plant, stack: AsyncExitStack) -> dict[str, Door]:
    """Open a door for each address, line and wire of a plant, by name."""
    loop = asyncio.get_running_loop()
    links = doors(plant.topology, plant.directory / "line-b") | _clients(plant)
    found = {name: Door(name, link) for name, link in links.items() if _is_plain(plant, name)}
    for door in found.values():
        door.way.open(door.hub, loop)
        stack.callback(door.way.close)
    await until(lambda: all(door.is_open for door in found.values()), 60, "a peer at each door")
    await asyncio.sleep(_GREETING_S)
    return found


def line(plant: Plant, stack: AsyncExitStack) -> None:
    """Lay the serial line of a plant."""
    modem = NullModem(plant.directory, asyncio.get_running_loop())
    stack.callback(modem.close)


def _is_plain(plant: Plant, door: str) -> bool:
    """Return whether a door takes frames: at others a protocol is spoken, by devices."""
    return plant.name not in ("engine", "meter", "mqtt") or door not in ("can", "uart", "tcp")


def _clients(plant: Plant) -> dict[str, Link]:
    """Return a client of the brokers for each side on the TMQ network."""
    brokers = tuple(broker.listen[0].url for broker in plant.topology.brokers.values())
    sides = (
        side.medium
        for bridge in plant.topology.bridges.values()
        for gateway in bridge.on
        for side in bridge.at(gateway)
    )
    return {
        f"tmq {number}": TmqLink(Tmq(brokers=brokers, subscribe=one.publish, publish=one.subscribe))
        for number, one in enumerate(sides)
        if isinstance(one, Tmq)
    }
