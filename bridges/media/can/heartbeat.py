"""The heartbeats of our node, which each Cyphal node that has an id owes all others. Pure.

Source: Cyphal specification 1.0, section 5.3.2, and its data type uavcan.node.Heartbeat.1.0.
"""

from struct import Struct
from typing import Final

from bridges.items import EXTENDED
from bridges.media.can.codec import ANONYMOUS, NODE_MAX, can_id, subject_mask
from bridges.media.can.state import State
from bridges.media.subject import HEARTBEAT

EVERY_S: Final = 1.0
"""The longest time between two."""
_LAYOUT: Final = Struct("<IBBB")  # uptime in s, health, mode, a status of the vendor's own
SIZE_BYTES: Final = _LAYOUT.size
_NOMINAL, _ADVISORY, _OPERATIONAL = 0, 1, 0
_UPTIME_S_MAX: Final = 0xFFFFFFFF
_WELL: Final = ("error-active", "unknown")


class Heartbeat:
    """The heartbeat of node `node`. Its uptime counts from the first one, over all openings of the bus."""

    def __init__(self, node: int) -> None:
        self.identifier = can_id(HEARTBEAT, node) | EXTENDED
        self._first_s: float | None = None

    @property
    def filter(self) -> tuple[int, int]:
        """The identifier of its frames, and a mask of the bits that tell them from those of other nodes."""
        value, mask = subject_mask(HEARTBEAT)
        return value | self.identifier & NODE_MAX, mask | ANONYMOUS | NODE_MAX

    def payload(self, now_s: float, state: State) -> bytes:
        """Return the 7 bytes of the next one. `state` is the controller's: health is advisory with errors."""
        if self._first_s is None:
            self._first_s = now_s
        uptime_s = min(int(now_s - self._first_s), _UPTIME_S_MAX)
        return _LAYOUT.pack(uptime_s, _NOMINAL if state in _WELL else _ADVISORY, _OPERATIONAL, 0)
