"""The pace of a backlog: how much of it goes out at once, and how long the pause is behind it. Pure.

A chunk is sent, and the next one only when the end has taken all of it and a pause is over, which is as much
longer than the chunk took as its share asks: so whatever the link carries, the backlog has its share of the
time, and a new message waits for one chunk at most. Chunks grow and shrink until one takes `CHUNK_S`.
"""

from typing import Final

CHUNK_S: Final = 0.02
CHUNK_BYTES: Final = 64 * 1024
CHUNK_BYTES_MIN: Final = 4 * 1024
CHUNK_BYTES_MAX: Final = 1 << 20


class Pace:
    """The pace of one connection. `share` of the time is the backlog's, above 0 and at most 1.

    `chunk_bytes` is the size of the next chunk.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._began_s = self._free_s = 0.0
        self._is_out = False
        self.chunk_bytes = CHUNK_BYTES

    def wait_s(self, now_s: float) -> float | None:
        """Return how long to wait before the next chunk; None if one is not taken yet."""
        return None if self._is_out else max(0.0, self._free_s - now_s)

    def begin(self, now_s: float) -> None:
        """Note that a chunk is sent."""
        self._began_s, self._is_out = now_s, True

    def done(self, now_s: float) -> None:
        """Note that the chunk that was sent is taken. Idempotent."""
        if not self._is_out:
            return
        took_s, self._is_out = now_s - self._began_s, False
        self._free_s = now_s + took_s * (1 / self._share - 1)
        wanted = self.chunk_bytes
        if took_s < CHUNK_S:
            wanted *= 2
        elif took_s > 2 * CHUNK_S:
            wanted //= 2
        self.chunk_bytes = max(CHUNK_BYTES_MIN, min(wanted, CHUNK_BYTES_MAX))
