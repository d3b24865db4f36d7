"""The state that the pipes of one CAN link share, from one opening of the bus to the next."""

from collections import deque
from dataclasses import dataclass, field

from bridges.items import CanFrame
from bridges.media.can.medium import Can
from bridges.media.can.state import BusState
from bridges.media.shedding import Shed
from bridges.media.wire import WireTap
from bus.ledger import Stats


@dataclass(frozen=True, slots=True)
class Shared:
    """The state of a link on the bus. `own` has the frames that we sent and that may still come back.

    `in_flight`: the least and the largest bound of frames in the driver.
    """

    name: str
    options: Can
    stats: Stats
    shed: Shed
    in_flight: tuple[int, int]
    bus: BusState
    own: deque[CanFrame]
    wire: WireTap = field(default_factory=WireTap)
