"""Whether the far end of a descriptor has gone. A tty that gives nothing is still there."""

import array
import contextlib
import fcntl
import select
import termios

_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL | select.POLLRDHUP


def has_ended(descriptor: int) -> bool:
    """Return whether nothing will ever be read from `descriptor` again: its other end has hung up.

    A read that gave nothing does not show it: a tty with VMIN and VTIME of 0, as pyserial sets them, gives
    nothing as often as nothing waits.
    """
    look = select.poll()
    look.register(descriptor, select.POLLIN | select.POLLRDHUP)
    return any(flags & _GONE for _, flags in look.poll(0)) and not waiting_bytes(descriptor)


def waiting_bytes(descriptor: int) -> int:
    """Return the number of bytes that can be read now; 0 if the driver does not tell, or is gone."""
    count = array.array("i", [0])
    with contextlib.suppress(OSError):
        fcntl.ioctl(descriptor, termios.FIONREAD, count)
    return count[0]
