"""The transport of J1939 for messages of 9 to 1,785 bytes, heard by one who takes no part. Pure.

A sender announces a message to all (BAM) or to one (RTS, which that one answers by CTS), and sends packets of
7 bytes with a number. Source: SAE J1939-21, 5.10.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from bridges.protocols.dbc.j1939.pgn import GLOBAL
from bridges.protocols.dbc.j1939.sessions import SESSIONS_MAX, Sessions

RTS, CTS, END, BAM, ABORT = 16, 17, 19, 32, 255
BYTES_MIN, BYTES_MAX = 9, 1785
BAM_S, RTS_S = 0.75, 1.25
"""The longest silence within a transport: T1, and T2 or T3, in seconds."""

_PACKET: Final = 7


class Whole(NamedTuple):
    """A message that was joined."""

    pgn: int
    source: int
    destination: int
    data: bytes


class _Session:
    """A transport from one source to one destination.

    `doubled`: it was announced twice in the same words, by one sender or by two. `spoilt`: packets of two
    senders can be in it.
    """

    __slots__ = (
        "announced",
        "data",
        "doubled",
        "due_s",
        "limit_s",
        "next",
        "packets",
        "pgn",
        "size",
        "spoilt",
    )

    def __init__(self, announced: bytes, limit_s: float, now_s: float) -> None:
        self.announced = announced
        self.size, self.packets = announced[1] | announced[2] << 8, announced[3]
        self.pgn = int.from_bytes(announced[5:8], "little")
        self.data, self.next = bytearray(), 1
        self.limit_s, self.due_s = limit_s, now_s + limit_s
        self.doubled = self.spoilt = False


class Transports(Sessions[_Session]):
    """The transports that are under way, at most 256. `rejected` counts by reason what became no message.

    `malformed`: a control frame or packet that is none. `size`: bytes and packets that do not fit each
    other. `unannounced`: a packet of no transport. `gap`: a packet that was missed. `interleaved`: a second
    announcement between the same two addresses, so that packets of either may follow: both are dropped,
    until there is silence. One in the same words is taken for a repetition, as long as packets agree.
    `aborted` by one of the two, `unfinished` (ended, or silent for too long), and
    `busy`, above 256.
    """

    def control(self, source: int, destination: int, data: bytes | bytearray, now_s: float) -> None:
        """Take a control frame."""
        self.expire(now_s)
        if len(data) != 8 or data[0] not in (RTS, CTS, END, BAM, ABORT):
            return self._reject("malformed")
        if data[0] == (BAM if destination == GLOBAL else RTS):
            return self._announced((source, destination), bytes(data), now_s)
        if data[0] in (RTS, BAM):
            return self._reject("malformed")
        return self._answered(source, destination, data, now_s)

    def _announced(self, key: tuple[int, int], data: bytes, now_s: float) -> None:
        size, packets = data[1] | data[2] << 8, data[3]
        before = self._sessions.get(key)
        if before is not None and (before.next > 1 or before.spoilt or before.announced != data):
            before.spoilt = True
            before.due_s = now_s + before.limit_s
            self._reject("interleaved")
        elif not BYTES_MIN <= size <= BYTES_MAX or packets != -(-size // _PACKET):
            self._reject("size")
        elif before is None and len(self._sessions) >= SESSIONS_MAX:
            self._reject("busy")
        else:
            limit_s = BAM_S if data[0] == BAM else RTS_S
            made = self._sessions[key] = _Session(data, limit_s, now_s)
            made.doubled = before is not None
            self.due_s = min(self.due_s, now_s + limit_s)

    def _answered(self, source: int, destination: int, data: bytes | bytearray, now_s: float) -> None:
        """Take what the receiver of a transport says to its sender, or an abort of either."""
        session = self._sessions.get((destination, source))
        if data[0] == ABORT:
            for key in ((destination, source), (source, destination)):
                self._abandon(key, "aborted", int.from_bytes(data[5:8], "little"))
        elif session is not None and data[0] == END and len(session.data) == session.size:
            del self._sessions[destination, source]  # what had been announced twice came once
        elif session is not None and not session.spoilt:
            session.due_s = now_s + session.limit_s
            if data[0] == END:
                self._abandon((destination, source), "unfinished")
            elif data[1]:
                self._go_to((destination, source), session, data[2])

    def _go_to(self, key: tuple[int, int], session: _Session, number: int) -> None:
        """Follow a receiver that asks for packets from `number` on, perhaps again."""
        if number > session.next:
            self._abandon(key, "gap")
        elif number:
            session.next = number
            del session.data[(number - 1) * _PACKET :]

    def _abandon(self, key: tuple[int, int], reason: str, pgn: int | None = None) -> None:
        session = self._sessions.get(key)
        if session is not None and pgn in (None, session.pgn):
            del self._sessions[key]
            if not session.spoilt:
                self._reject(reason)

    def packet(self, source: int, destination: int, data: bytes | bytearray, now_s: float) -> Whole | None:
        """Take a packet. Return the message that it completes, or None."""
        self.expire(now_s)
        key = (source, destination)
        session = self._sessions.get(key)
        if session is None or session.spoilt or len(data) < 2:
            if session is not None and session.spoilt:
                session.due_s = now_s + session.limit_s
            self._reject(
                "malformed" if len(data) < 2 else "unannounced" if session is None else "interleaved"
            )
            return None
        left = session.size - len(session.data)
        if data[0] != session.next or len(data) <= min(left, _PACKET):
            self._reject("gap" if data[0] != session.next else "malformed")
            self._close(key, session)
            return None
        session.data += data[1 : 1 + min(left, _PACKET)]
        session.next += 1
        session.due_s = now_s + session.limit_s
        if len(session.data) < session.size:
            return None
        self._close(key, session)
        return Whole(session.pgn, source, destination, bytes(session.data))

    def _close(self, key: tuple[int, int], session: _Session) -> None:
        """End a transport. After two announcements the packets of another one may still come: not until
        there is silence, or its receiver is content, is the way free for the next."""
        if session.doubled:
            session.spoilt = True
        else:
            del self._sessions[key]

    def _silent(self, key: tuple[int, int]) -> None:
        self._abandon(key, "unfinished")


def announce(pgn: int, size: int, kind: int = BAM) -> bytes:
    """Return the control frame that announces a message of `size` bytes."""
    return bytes((kind, size & 0xFF, size >> 8, -(-size // _PACKET), 0xFF)) + pgn.to_bytes(3, "little")


def packets(data: bytes) -> Iterator[bytes]:
    """Yield the packets of a message."""
    for number, start in enumerate(range(0, len(data), _PACKET), 1):
        yield bytes((number,)) + data[start : start + _PACKET].ljust(_PACKET, b"\xff")
