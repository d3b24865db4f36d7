"""The numbers of datagrams on the air, by which one that comes twice is known. Pure.

A datagram on the air is a number (u16, big-endian), the body of a datagram of multicast, and a CRC-32 over
both, little-endian: docs/wire/ieee802154.md.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from struct import Struct
from typing import Final
from zlib import crc32

from bridges.media.multicast.datagram import RESIDUE, with_crc
from bridges.media.multicast.fragments import CRC

NUMBER: Final = Struct(">H")
SENDERS_MAX: Final = 64
"""The most senders whose numbers are remembered; one more replaces the one that was silent for longest."""
RECENT: Final = 64
"""The numbers before the newest that are known again."""
_ALL: Final = (1 << RECENT) - 1
_NUMBERS: Final = 1 << 16

Letter = tuple[bytes, Hashable]
"""A datagram and its sender."""


class Outbound:
    """The numbering of what this radio sends, from `first` on. A number is used up by `sent`."""

    def __init__(self, first: int) -> None:
        self._next = first % _NUMBERS

    def numbered(self, datagram: bytes) -> bytes:
        """Return a datagram of multicast as it goes on the air."""
        return with_crc(NUMBER.pack(self._next) + datagram[: -CRC.size])

    def sent(self) -> None:
        """Note that the last one was sent, so that the next one gets another number."""
        self._next = (self._next + 1) % _NUMBERS


class Inbound:
    """The numbers that came lately. `rejected` counts what is a `duplicate`; the rest is for the decoder."""

    def __init__(self, rejected: dict[str, int]) -> None:
        self._rejected = rejected
        self._senders: OrderedDict[Hashable, tuple[int, int]] = OrderedDict()

    def opened(self, letters: Sequence[Letter]) -> list[Letter]:
        """Return what came as datagrams of multicast, without duplicates; damaged ones unchanged."""
        found = list[Letter]()
        for datagram, sender in letters:
            if crc32(datagram) != RESIDUE or len(datagram) < NUMBER.size + CRC.size:
                found.append((datagram, sender))
            elif self._is_new(sender, NUMBER.unpack_from(datagram)[0]):
                found.append((with_crc(datagram[NUMBER.size : -CRC.size]), sender))
            else:
                self._rejected["duplicate"] = self._rejected.get("duplicate", 0) + 1
        return found

    def _is_new(self, sender: Hashable, number: int) -> bool:
        """Note a number of a sender. Return whether it did not come lately.

        `seen` has a bit for each of the last numbers, the newest lowest. A number far from it is that of a
        sender that began anew.
        """
        newest, seen = self._senders.pop(sender, (number, 0))
        ahead = (number - newest) % _NUMBERS
        behind = -ahead % _NUMBERS
        if ahead and ahead < _NUMBERS // 2:
            newest, seen = number, seen << ahead & _ALL if ahead < RECENT else 0
            behind = 0
        elif behind >= RECENT:
            newest, seen, behind = number, 0, 0
        is_new = not seen >> behind & 1
        self._senders[sender] = newest, seen | 1 << behind
        if len(self._senders) > SENDERS_MAX:
            self._senders.popitem(last=False)
        return is_new
