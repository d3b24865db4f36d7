"""Removal of the local echo of a line whose devices speak a protocol, by counted matching of bytes. No clock.

A two-wire adapter hears what it sends. Each run that we write is expected back once, whole and in order,
until it expires. Until a run is decided its beginning is held back, so nothing of another device is taken for
ours because a few bytes are equal.
"""

from collections import deque
from math import inf
from typing import Final, NamedTuple

from bus.ledger import Stats

ECHO_S: Final = 0.25
"""The longest delay of an echo after its time on the line: adapters wait up to 16 ms."""
_EXPECTED_BYTES: Final = 1 << 16  # a bound for a line without echo, beside the expiry of each run


class _Run(NamedTuple):
    data: bytes
    expires_s: float


class ByteEcho:
    """A filter for our own bytes. Echoes are counted in `stats.rejected` as `echo`, and as `echo damaged` if
    some bytes differ; `lost` counts runs that never came back. `due_s` is when held bytes must be given.
    """

    __slots__ = ("_expected", "_held", "_size", "_stats", "due_s", "lost")

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._expected: deque[_Run] = deque()
        self._size = 0
        self._held = b""
        self.lost = 0
        self.due_s = inf

    def sent(self, data: bytes, expires_s: float) -> None:
        """Expect the echo of `data`, which was written behind what is expected already."""
        if data:
            self._expected.append(_Run(data, expires_s))
            self._size += len(data)
        while self._size > _EXPECTED_BYTES:
            self._forget()

    def heard(self, data: bytes, now_s: float) -> bytes:
        """Return what is not ours of `data` and of what is held back; `data` may be empty."""
        given = list[bytes]()
        while self._expected and self._expected[0].expires_s < now_s:
            given.append(self._held)
            self._held = b""
            self._forget()
        self._held += data
        while self._expected and self._held and self._step(given):
            pass
        if not self._expected:
            given.append(self._held)
            self._held = b""
        self.due_s = self._expected[0].expires_s if self._held else inf
        return b"".join(given)

    def _step(self, given: list[bytes]) -> bool:
        """Decide about the start of what is held. Return whether there may be more to decide."""
        run = self._expected[0].data
        size = min(len(run), len(self._held))
        if self._held[:size] == run[:size]:
            return size == len(run) and self._take("echo", size)
        if size == len(run) and _likeness(self._held[:size], run) * 2 > size:
            return self._take("echo damaged", size)
        return self._skip(run, given)

    def _take(self, reason: str, size: int) -> bool:
        self._held = self._held[size:]
        self._stats.reject(reason)
        self._size -= len(self._expected.popleft().data)
        return True

    def _skip(self, run: bytes, given: list[bytes]) -> bool:
        """Give what stands before the next place where the run may begin: whole, or at the end in part."""
        start = run[:8]
        at = self._held.find(start, 1)
        if at < 0:
            if len(self._held) < len(run) and _likeness(self._held, run) * 2 > len(self._held):
                return False  # perhaps damaged: it is decided when as much has come, or when it expires
            at = next(
                (n for n in range(max(1, len(self._held) - len(start) + 1), len(self._held))
                 if start.startswith(self._held[n:])),
                len(self._held),
            )  # fmt: skip
        given.append(self._held[:at])
        self._held = self._held[at:]
        return bool(self._held)

    def _forget(self) -> None:
        self._size -= len(self._expected.popleft().data)
        self.lost += 1


def _likeness(one: bytes, other: bytes) -> int:
    """Return at how many places two runs have the same byte."""
    return sum(map(int.__eq__, one, other))
