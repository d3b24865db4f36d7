"""The packets that a module was given and whose transmit status is awaited. Pure: time is an argument."""

from math import inf
from typing import Final, NamedTuple

_IDS: Final = 255
"""Frame ids are 1 to 255: with 0 the module sends no status."""


class Packet(NamedTuple):
    """A packet: the message that it was, the pattern's last name for people, and until when to wait."""

    message: bytes
    name: str
    due_s: float


class Pending:
    """At most `most` packets by their frame ids, the oldest first.

    The clock gives the first frame id, in milliseconds: else, after a quick restart, a status for a packet of
    before would be taken for that of the first new one.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: int | None = None
        self._packets: dict[int, Packet] = {}

    def __len__(self) -> int:
        return len(self._packets)

    @property
    def is_full(self) -> bool:
        return len(self._packets) >= self._most

    @property
    def due_s(self) -> float:
        """The time at which the oldest packet has waited too long; infinite if none waits."""
        return next(iter(self._packets.values())).due_s if self._packets else inf

    def add(self, packet: Packet) -> int:
        """Add a packet, if not `is_full`. Return its frame id, which no other has."""
        last = round(packet.due_s * 1000) if self._last is None else self._last
        found = last % _IDS + 1
        while found in self._packets:
            found = found % _IDS + 1
        self._packets[found], self._last = packet, found
        return found

    def take(self, frame_id: int) -> Packet | None:
        """Return and forget the packet of a frame id; None if there is none."""
        return self._packets.pop(frame_id, None)

    def expired(self, now_s: float) -> list[Packet]:
        """Return and forget the packets that have waited too long."""
        late = [number for number, packet in self._packets.items() if packet.due_s <= now_s]
        return [self._packets.pop(number) for number in late]

    def clear(self) -> list[Packet]:
        """Return and forget all packets."""
        packets = list(self._packets.values())
        self._packets.clear()
        return packets
