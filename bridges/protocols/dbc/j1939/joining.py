"""The joining of long messages of J1939 and NMEA 2000 from the frames of one wire. Pure."""

from typing import Final

from bridges.items import EXTENDED
from bridges.protocols.dbc.j1939.fast import FastPackets
from bridges.protocols.dbc.j1939.pgn import PACKETS, TRANSPORT, destination_of, pgn_of
from bridges.protocols.dbc.j1939.transport import Transports

_PGN_MAX: Final = 0x3FFFF


class Joiner:
    """The long messages of one wire that are under way. `rejected` counts by reason what became none."""

    def __init__(self, rejected: dict[str, int]) -> None:
        self._transports, self._fast = Transports(rejected), FastPackets(rejected)

    @property
    def due_s(self) -> float:
        """The time before which none of them ends in silence."""
        return min(self._transports.due_s, self._fast.due_s)

    def expire(self, now_s: float) -> None:
        """Drop the messages that were silent for too long."""
        self._transports.expire(now_s)
        self._fast.expire(now_s)

    def take(self, identifier: int, data: bytes | bytearray, now_s: float) -> tuple[int, bytes] | None:
        """Take a frame that is a part of a message. Return the identifier that the message would have, and
        its data, if that was the last part; else None."""
        pgn, source = pgn_of(identifier), identifier & 0xFF
        if pgn == TRANSPORT:
            self._transports.control(source, destination_of(identifier), data, now_s)
            return None
        if pgn != PACKETS:
            fast = self._fast.frame(identifier, data, now_s)
            return None if fast is None else (identifier, fast)
        whole = self._transports.packet(source, destination_of(identifier), data, now_s)
        return None if whole is None else (EXTENDED | (whole.pgn & _PGN_MAX) << 8 | source, whole.data)
