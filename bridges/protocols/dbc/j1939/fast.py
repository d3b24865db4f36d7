"""The fast packets of NMEA 2000: messages of up to 223 bytes in frames of one identifier. Pure.

The first byte of each frame is a number of the message (3 bits) and one of the frame (5 bits). The first has
the length of the data and 6 bytes of them, the others 7. Source: captures of such networks.
"""

from math import inf
from typing import Final

from bridges.protocols.dbc.j1939.sessions import SESSIONS_MAX, Sessions

BYTES_MAX: Final = 6 + 31 * 7
SILENCE_S: Final = 0.75

_COUNTER: Final = 0x1F


class _Session:
    """A message that is under way."""

    __slots__ = ("data", "due_s", "next", "size")

    def __init__(self, size: int) -> None:
        self.size, self.data, self.next, self.due_s = size, bytearray(), 0, inf


class FastPackets(Sessions[_Session]):
    """The messages that are under way, at most 256. `rejected` counts by reason what became no message.

    `malformed`: a frame with fewer data than it has to have. `size`: a length that cannot be. `unannounced`:
    a frame whose first one was not seen. `gap`: a frame was missed. `interleaved`: a second message of the
    same number began before the first was whole, and neither counts. `unfinished`: silent for too long.
    `busy`: above 256.
    """

    def frame(self, identifier: int, data: bytes | bytearray, now_s: float) -> bytes | None:
        """Take a frame. Return the data of the message that it completes, or None."""
        self.expire(now_s)
        if len(data) < 2:
            self._reject("malformed")
            return None
        key, number = (identifier, data[0] & ~_COUNTER), data[0] & _COUNTER
        if not number and not self._begun(key, data[1]):
            return None
        session = self._sessions.get(key)
        if session is None:
            self._reject("unannounced")
            return None
        return self._followed(key, session, number, data[1 if number else 2 :], now_s)

    def _begun(self, key: tuple[int, int], size: int) -> bool:
        if self._sessions.pop(key, None):
            self._reject("interleaved")  # two senders with one address: what follows could be of either
            return False
        if not 0 < size <= BYTES_MAX or len(self._sessions) >= SESSIONS_MAX:
            self._reject("busy" if 0 < size <= BYTES_MAX else "size")
            return False
        self._sessions[key] = _Session(size)
        return True

    def _followed(
        self, key: tuple[int, int], session: _Session, number: int, data: bytes | bytearray, now_s: float
    ) -> bytes | None:
        """Take the frame of a session."""
        left, room = session.size - len(session.data), 7 if number else 6
        if number != session.next or len(data) < min(left, room):
            del self._sessions[key]
            self._reject("gap" if number != session.next else "malformed")
            return None
        session.data += data[: min(left, room)]
        session.next += 1
        session.due_s = now_s + SILENCE_S
        self.due_s = min(self.due_s, session.due_s)
        if len(session.data) < session.size:
            return None
        del self._sessions[key]
        return bytes(session.data)
