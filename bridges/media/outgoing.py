"""The bytes that leave by a wire with a protocol: messages as items, and what the translator says itself."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bridges.media.shedding import Shed, ShedQueue, fitting
from bridges.protocols.translator import Translator
from bus.ledger import Stats


class _Piece(NamedTuple):
    """Bytes for the wire, of `message`; b"" for what the translator says itself, or of a message it holds."""

    data: bytes
    message: bytes


class Outgoing:
    """A queue of messages that a translator turns into bytes, as the wire takes them. No I/O.

    A message that has begun is always finished. It counts as sent when its last byte is written, or when
    the translator takes it without bytes; one that the translator holds counts as that settles it.
    """

    def __init__(self, stats: Stats, shed: Shed, translator: Translator[bytes]) -> None:
        self._stats, self._translator = stats, translator
        self._queue = ShedQueue(stats, shed, on_lost=translator.lose if translator.asks else None)
        self._pieces: deque[_Piece] = deque()
        self._begun = self._size = 0  # bytes of the first piece that are written; bytes of all pieces

    def __len__(self) -> int:
        return len(self._pieces) + len(self._queue)

    def revise(self, shed: Shed) -> None:
        """Change to another policy, for all messages that are no bytes yet."""
        self._queue.revise(shed)

    def put(self, messages: Sequence[bytes], now_s: float) -> None:
        """Queue the messages that the policy admits. Messages of an illegal size are dropped and counted."""
        self._queue.put(now_s, fitting(messages, self._stats))

    def say(self, items: Sequence[bytes]) -> None:
        """Queue bytes of the translator's own, in front of messages that are no bytes yet."""
        for data in items:
            self._add(data, b"")

    def retract(self) -> None:
        """Take back what the translator itself wanted to say, if it has not begun."""
        kept = [piece for n, piece in enumerate(self._pieces) if piece.message or (n == 0 and self._begun)]
        self._pieces = deque(kept)
        self._size = sum(len(piece.data) for piece in kept)

    def _add(self, data: bytes, message: bytes) -> None:
        self._pieces.append(_Piece(data, message))
        self._size += len(data)

    def expire(self, now_s: float) -> None:
        """Drop messages that are older than the policy allows."""
        self._queue.expire(now_s)

    def ready_s(self) -> float:
        """Return the time at which the rate limit allows the next message; infinite if none waits."""
        return self._queue.ready_s() if self._translator.is_free else float("inf")

    def head(self, room: int, now_s: float, ahead_s: Callable[[int], float]) -> bytes:
        """Return the next bytes for the wire, at most `room`. They may end inside a message.

        `ahead_s(size)` is how long a byte behind `size` others still takes; a message that would be too old
        by then is not taken.
        """
        while self._size - self._begun < room and self._translator.is_free:
            taken = self._queue.take(now_s, ahead_s(self._size - self._begun))
            if taken is None:
                break
            came_s, message = taken
            self._translate(message, came_s if self._translator.asks else now_s)
        return b"".join(piece.data for piece in self._pieces)[self._begun : self._begun + room]

    def _translate(self, message: bytes, now_s: float) -> None:
        sent = self._translator.give(message, now_s)
        data = b"".join(sent.items)
        if data:
            self._add(data, b"" if sent.held else message)
        elif not sent.held:
            self._queue.settle(len(message), sent.why)

    def settle_held(self) -> None:
        """Count the messages that waited in the translator, and wait no longer."""
        settled = self._translator.settled
        for size, why in settled:
            self._queue.settle(size, why)
        settled.clear()

    def settle(self, written: int) -> None:
        """Note that `written` more bytes are written."""
        self._begun += written
        while self._pieces and self._begun >= len(self._pieces[0].data):
            data, message = self._pieces.popleft()
            self._begun -= len(data)
            self._size -= len(data)
            if message:
                self._queue.settle(len(message))

    def turn_away(self, messages: Sequence[bytes], reason: str) -> None:
        """Tell the translator of messages that were dropped on their way here, and counted there."""
        for message in messages:
            self._translator.lose(message, reason)

    def purge(self, reason: str) -> list[bytes]:
        """Drop what has not begun, also what the translator wanted to say; return the messages."""
        kept = [self._pieces.popleft()] if self._begun else []
        self.settle_held()
        dropped = [piece.message for piece in self._pieces if piece.message] + self._translator.give_up()
        for message in dropped:
            self._queue.settle(len(message), reason)
            self._translator.lose(message, reason)
        self._pieces = deque(kept)
        self._size = sum(len(piece.data) for piece in kept)
        return dropped + self._queue.clear(reason)

    def close(self, reason: str) -> None:
        """Drop everything, even a message that has begun."""
        self._begun = 0
        self.purge(reason)
