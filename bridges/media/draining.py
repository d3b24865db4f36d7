"""The output of a tty that waits in its driver, where the line may take nothing.

tcdrain() then never returns, and the end of a tty's last descriptor waits for up to 30 s.
"""

import errno
import fcntl
import struct
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread, main_thread
from typing import Final

STILL_S: Final = 1.0
"""A line that has taken nothing for so long takes nothing."""
LONGEST_S: Final = 30.0
_LOOK_S: Final = 0.001
_COUNT: Final = struct.Struct("i")


def queued_bytes(descriptor: int) -> int:
    """Return the number of bytes that wait in the driver; 0 if it does not tell, or is gone."""
    try:
        return int(_COUNT.unpack(fcntl.ioctl(descriptor, termios.TIOCOUTQ, _COUNT.pack(0)))[0])
    except OSError:
        return 0  # if the device is gone, the next write fails


def drain(descriptor: int) -> None:
    """Wait until all has left. Raises `TimeoutError` for a line that takes nothing, or is too slow: above all
    for a program that ends."""
    began_s = moved_s = time.monotonic()
    left = queued_bytes(descriptor)
    while left:
        time.sleep(_LOOK_S)
        before, left, now_s = left, queued_bytes(descriptor), time.monotonic()
        if left < before:
            moved_s = now_s
        longest_s = LONGEST_S if main_thread().is_alive() else STILL_S
        if left and now_s > min(moved_s + STILL_S, began_s + longest_s):
            raise TimeoutError(errno.ETIMEDOUT, "the line takes nothing")


def close_drained(descriptor: int, close: Callable[[], object]) -> None:
    """Call `close`, which closes a tty: in a thread if bytes wait, which are dropped if they do not leave.

    The end of the program waits for that thread: else the kernel waits, which closes what is left open.
    """
    if queued_bytes(descriptor):
        Thread(target=_end, args=(descriptor, close), daemon=False, name="tty close").start()
    else:
        _close(close)


def _end(descriptor: int, close: Callable[[], object]) -> None:
    try:
        drain(descriptor)
    except TimeoutError:
        with suppress(termios.error):
            termios.tcflush(descriptor, termios.TCOFLUSH)
    _close(close)


def _close(close: Callable[[], object]) -> None:
    with suppress(OSError):
        close()
