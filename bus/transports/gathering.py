"""Gathering: under load, read many small messages at once instead of one in a wake-up.

A sender that writes each message by itself may cost a segment, an acknowledgement and a wake-up for each.
Here the reader then looks away for a moment, while the loop serves others, and lends the sender so small a
window that the sender's kernel merges what does not fit. The small window merges, not the wait alone.

A lone message is never delayed, nor a dialogue: gathering needs a run of reads between which nothing was
written to the peer, so quick that a wait will bring many. A timer ends each wait; it takes a loop whose
timers are exact, because asyncio's own round up to a millisecond.
"""

import socket
from contextlib import suppress
from time import monotonic

from bus.transports.sockets import Tunable

WAIT_S = 300e-6
WINDOW_BYTES = 64 * 1024
LARGE_BYTES = 32 * 1024  # a read this large needs no gathering, and a larger window
LEAST = 24  # messages that come within a wait from a peer quick enough
LITTLE = 4  # a wait that brought fewer did not pay
ONE_WAY = 8  # reads in a row between which nothing was written to the peer
READS = 16  # reads of a run that tell how quick the peer is
POOR = 4  # waits in a row that did not pay, before gathering ends
SO_BUF_LOCK = 72  # Linux 5.14: which buffer sizes were set by hand; 0 gives them back to the kernel


class Gathering:
    """The gathering of one connected socket. Set `spoken` when something is written to the peer."""

    __slots__ = ("_began_s", "_messages", "_poor", "_reads", "_socket", "_unanswered", "gathers", "spoken")

    def __init__(self, sock: Tunable) -> None:
        self._socket = sock
        self._reads = self._messages = self._poor = self._unanswered = 0
        self._began_s = 0.0
        self.gathers = self.spoken = False

    @property
    def is_one_way(self) -> bool:
        """Whether the peer goes on without an answer: what it says next answers nothing either."""
        return self._unanswered >= ONE_WAY

    def note(self, read_bytes: int, messages: int) -> bool:
        """Note how much a read brought. Return whether to wait for `WAIT_S` before the next one."""
        self._unanswered = 0 if self.spoken else self._unanswered + 1
        if self.spoken or read_bytes >= LARGE_BYTES:
            self.spoken, self._reads = False, 0
            if self.gathers:
                self._leave()
        elif self.gathers:
            self._poor = self._poor + 1 if messages < LITTLE else 0
            if self._poor >= POOR:
                self._leave()
        else:
            self._count(messages)
        return self.gathers

    def _count(self, messages: int) -> None:
        """Count a read of a run, and begin to gather if the run was quick."""
        if not self._reads:
            self._began_s, self._messages = monotonic(), 0
        else:
            self._messages += messages
        self._reads += 1
        if self._reads > READS:
            self._reads = 0
            if self._messages * WAIT_S >= LEAST * (monotonic() - self._began_s):
                self._enter()

    def _enter(self) -> None:
        self.gathers, self._poor = True, 0
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW_BYTES)

    def _leave(self) -> None:
        self.gathers = False
        with suppress(OSError):  # an older kernel: the window stays
            self._socket.setsockopt(socket.SOL_SOCKET, SO_BUF_LOCK, 0)


class NoGathering(Gathering):
    """No gathering: for peers that send many messages at once by themselves."""

    __slots__ = ()

    def note(self, read_bytes: int, messages: int) -> bool:
        return False
