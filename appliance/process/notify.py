"""Notification of the service manager: ready, reloading, stopping, and a watchdog (sd_notify).

A message is one datagram to the socket that `$NOTIFY_SOCKET` names. Without one, nothing is sent.
"""

import asyncio
import faulthandler
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from bus.text import plain

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"
_BEATS: Final = 3  # within the time after which the manager restarts us


def tell(*words: str) -> bool:
    """Send assignments, such as READY=1. Return whether the manager took them; never block, raise nothing.

    Each is one line: words from outside make no second one.
    """
    path = os.environ.get("NOTIFY_SOCKET", "")
    if path[:1] not in ("/", "@"):
        return False
    address = f"\0{path[1:]}" if path.startswith("@") else path  # a name without a file
    with suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.sendto("\n".join(map(plain, words)).encode(), address)
        return True
    return False


@contextmanager
def reloading() -> Iterator[None]:
    """Notify that a reload runs during the block, and at its end that the process is ready again."""
    tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
    try:
        yield
    finally:
        tell(READY)


def watchdog_s() -> float | None:
    """Return the watchdog time after which the manager restarts a silent process; None without a watchdog."""
    with suppress(KeyError, ValueError):
        usec = int(os.environ["WATCHDOG_USEC"])
        if usec > 0 and int(os.environ.get("WATCHDOG_PID", os.getpid())) == os.getpid():
            return usec / 1e6
    return None


class Heart:
    """The watchdog's heartbeat, sent from the event loop: a loop that stands still sends none.

    The manager then ends the process by SIGABRT: the log has the stacks of its threads.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        limit_s = watchdog_s()
        if limit_s is not None:
            self._pause_s = limit_s / _BEATS
            with suppress(OSError, RuntimeError, ValueError):  # without a standard error
                faulthandler.enable()
            self._beat()

    def _beat(self) -> None:
        self._timer = self._loop.call_later(self._pause_s, self._beat)
        tell(ALIVE)

    def close(self) -> None:
        """Stop the heartbeat. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
