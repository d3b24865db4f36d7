"""The CAN interfaces of this machine: why one cannot be used, and what to do about it."""

import errno
import socket
from pathlib import Path
from typing import Final

from bus.errors import words_of
from bus.machine.holders import holding_words

_NET = Path("/sys/class/net")
_ARPHRD_CAN, _IFF_UP = 280, 1
_FD_BYTES: Final = 72  # linux/can.h: CANFD_MTU


def trouble(interface: str, fd: bool = False) -> str:
    """Return why SocketCAN cannot use an interface now, for CAN FD if `fd`, and what to do about it; "" if it
    can."""
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
    return classic(interface) if fd else ""


def classic(interface: str) -> str:
    """Return that an interface carries no CAN FD, and what to do about it; "" if it does, or is not there."""
    try:
        mtu_bytes = int((_NET / interface / "mtu").read_text())
    except (OSError, ValueError):
        return ""
    if mtu_bytes >= _FD_BYTES:
        return ""
    rates = "type can bitrate 500000 dbitrate 2000000 fd on, with its bit rates"
    set_up = f"mtu {_FD_BYTES} up" if _is_virtual(interface) else f"up {rates}"
    down = f"run ip link set {interface} down; ip link set {interface} {set_up}"
    return f"{interface} carries no CAN FD, as fd: true wants it: {down}; or write fd: false"


def _is_virtual(interface: str) -> bool:
    """Return whether an interface has no controller, such as `vcan0`, or its driver is a program."""
    return "virtual" in (_NET / interface).resolve().parts


def has_carrier(interface: str) -> bool:
    """Return whether an interface has a carrier. Raises `OSError` for one that is not there."""
    return (_NET / interface / "carrier").read_text().strip() == "1"


def explained(error: OSError, interface: str) -> str:
    """Return what went wrong on a SocketCAN interface, and what to do about it if that is known."""
    rate = "" if _is_virtual(interface) else " type can bitrate 500000, with its bit rate"
    advice = {
        errno.EAFNOSUPPORT: "the kernel has no CAN: run modprobe -a can can_raw",
        errno.ENODEV: "run ip link to see the names",
        errno.ENETDOWN: f"run ip link set {interface} up{rate}",
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
