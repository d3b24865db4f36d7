"""The CAN interfaces of this machine: why one cannot be used, and what to do about it."""

import errno
import socket
from pathlib import Path

from bus.errors import words_of
from bus.machine.holders import holding_words

_NET = Path("/sys/class/net")
_ARPHRD_CAN, _IFF_UP = 280, 1


def trouble(interface: str) -> str:
    """Return why SocketCAN cannot use an interface now, and what to do about it; "" if it can."""
    try:
        socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW).close()
    except OSError as error:
        return explained(error, interface)
    try:
        flags = int((_NET / interface / "flags").read_text(), 16)
        kind = int((_NET / interface / "type").read_text())
    except (OSError, ValueError):
        return f"no interface {interface}: run ip link to see the names; load the driver of the adapter"
    if kind != _ARPHRD_CAN:
        return f"{interface} is no CAN interface: run ip link to see the names"
    if not flags & _IFF_UP:
        return explained(OSError(errno.ENETDOWN, f"{interface} is down"), interface)
    return ""


def has_carrier(interface: str) -> bool:
    """Return whether an interface has a carrier. Raises `OSError` for one that is not there."""
    return (_NET / interface / "carrier").read_text().strip() == "1"


def explained(error: OSError, interface: str) -> str:
    """Return what went wrong on a SocketCAN interface, and what to do about it if that is known."""
    advice = {
        errno.EAFNOSUPPORT: "the kernel has no CAN: run modprobe -a can can_raw",
        errno.ENODEV: "run ip link to see the names",
        errno.ENETDOWN: f"run ip link set {interface} up type can bitrate 500000, with its bit rate",
    }.get(error_number(error) or 0)
    if interface.startswith("/"):
        return holding_words(error, interface)
    return f"{words_of(error)}: {advice}" if advice else words_of(error)


def error_number(error: BaseException) -> int | None:
    """Return the errno of an error of python-can or of its cause; None if there is none."""
    for fault in (error, error.__cause__):
        number = getattr(fault, "error_code", None) or getattr(fault, "errno", None)
        if isinstance(number, int):
            return number
    return None
