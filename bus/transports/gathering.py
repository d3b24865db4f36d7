"""Gathering: under load, read many small messages at once instead of one in a wake-up.

A sender that writes each message by itself may cost a segment, an acknowledgement and a wake-up for each.
Here the reader then waits a moment before it reads, and lends the sender so small a window that the sender's
kernel merges what does not fit. Gathering begins after a run of small reads with no pause between them and
goes on while it yields several messages a read, so it never delays a lone one. The
wait is a short sleep, since asyncio rounds timers up to a millisecond. Waiting alone does not make the kernel
merge: the small window does.
"""

import socket
from contextlib import suppress
from time import monotonic, sleep

from bus.transports.sockets import Tunable

WAIT_S = 100e-6
WINDOW_BYTES = 64 * 1024
LARGE_BYTES = 32 * 1024  # a read this large needs no gathering, and a larger window
_YIELD = 4  # messages a read below which waiting did not pay
_BRISK_S = 60e-6
BRISK_READS = 16
SO_BUF_LOCK = 72  # Linux 5.14: which buffer sizes were set by hand; 0 gives them back to the kernel


class Gathering:
    """The gathering of one connected socket: `wait()` before each read, `note()` after it."""

    __slots__ = ("_brisk", "_narrow", "_read_at", "_socket")

    def __init__(self, sock: Tunable) -> None:
        self._socket = sock
        self._brisk = 0
        self._narrow = False
        self._read_at = 0.0

    def wait(self) -> None:
        """Count small reads without a pause between them; after a run of those, wait for more."""
        if not self._brisk:
            return
        if self._brisk < BRISK_READS:
            brisk = monotonic() - self._read_at < _BRISK_S
            self._brisk = self._brisk + 1 if brisk else max(1, self._brisk // 2)
        if self._brisk == BRISK_READS:
            if not self._narrow:
                self._narrow_window()
            sleep(WAIT_S)

    def note(self, read_bytes: int, messages: int) -> None:
        """Note how many bytes and whole messages the read brought."""
        if read_bytes >= LARGE_BYTES:
            self._brisk = 0
            if self._narrow:
                self._widen_window()
        elif self._brisk < BRISK_READS or messages < _YIELD:
            self._read_at = monotonic()
            self._brisk = min(self._brisk or 1, BRISK_READS - 1)

    def _narrow_window(self) -> None:
        self._narrow = True
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW_BYTES)

    def _widen_window(self) -> None:
        self._narrow = False
        with suppress(OSError):  # an older kernel: the window stays
            self._socket.setsockopt(socket.SOL_SOCKET, SO_BUF_LOCK, 0)


class NoGathering(Gathering):
    """No gathering: for peers that send many messages at once by themselves."""

    __slots__ = ()

    def wait(self) -> None:
        return

    def note(self, read_bytes: int, messages: int) -> None:
        return
