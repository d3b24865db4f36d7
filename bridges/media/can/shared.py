"""The state that the pipes of one CAN link share, from one opening of the bus to the next."""

import random
from collections import deque
from dataclasses import dataclass

from bridges.media.can.medium import Can
from bridges.media.can.state import BusState
from bridges.media.seals import Seals
from bridges.media.shedding import Shed
from bus.ledger import Stats


class TransferIds:
    """A counter of transfer-ids. It continues when the bus is opened again: repeats look like duplicates."""

    def __init__(self) -> None:
        self._last = random.randrange(32)  # after a quick restart, 0 could look like a duplicate

    def next(self) -> int:
        self._last += 1
        return self._last

    def take_back(self) -> None:
        """Take back the last id, which was not used: after 31 unused ids the next looks like a duplicate."""
        self._last -= 1


@dataclass(frozen=True, slots=True)
class Shared:
    """The state of our node on the bus. `own` has the frames that we sent and that may still come back."""

    name: str
    identifier: int
    options: Can
    stats: Stats
    shed: Shed
    in_flight: int
    bus: BusState
    own: deque[bytes]
    transfers: TransferIds
    seals: Seals | None = None
