"""The network interface of a radio, by its name: whether it is there, up, and in its PAN."""

import contextlib
import errno
import fcntl
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bus.errors import words_of

# The kernel's interface (linux/socket.h, net/af_ieee802154.h, linux/sockios.h), which `socket` lacks.
FAMILY: Final = 36
_SIOCGIFADDR: Final = 0x8915
_REQUEST: Final = struct.Struct("=16sH2xiHH12x")
_TYPE: Final = 804  # ARPHRD_IEEE802154


@dataclass(frozen=True, slots=True)
class Card:
    """The network interface of a radio: `address` is its long one, 16 hex digits."""

    index: int
    name: str
    mtu: int
    address: str


def make_socket() -> socket.socket:
    """Open a socket of the family, which never blocks. Raises OSError that says what is wrong."""
    try:
        return socket.socket(FAMILY, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, 0)
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:
            raise OSError("the kernel has no sockets of IEEE 802.15.4: modprobe ieee802154_socket") from error
        raise


def find(name: str, pan: int, sock: socket.socket) -> Card:
    """Find the radio with this interface, and check that it is up in this PAN. Raises OSError."""
    folder = Path("/sys/class/net") / name
    if not folder.exists():
        raise OSError(f"no interface {name}: run iwpan dev to see the radios that there are")
    if int(_read(folder / "type")) != _TYPE:
        raise OSError(f"{name} is no radio of IEEE 802.15.4: run iwpan dev to see those that there are")
    if not int(_read(folder / "flags"), 16) & 1:
        raise OSError(f"{name} is down: run ip link set {name} up")
    _check_pan(name, pan, sock)
    address = _read(folder / "address").replace(":", "")
    return Card(int(_read(folder / "ifindex")), name, int(_read(folder / "mtu")), address)


def _read(path: Path) -> str:
    return path.read_text().strip()


def _check_pan(name: str, pan: int, sock: socket.socket) -> None:
    """Raise OSError if the interface is in another PAN, or in none: then it would hear nobody."""
    request = bytearray(_REQUEST.pack(name.encode(), FAMILY, 0, 0, 0))
    do = f"run iwpan dev {name} set pan_id {pan:#06x}, and set short_addr, while it is down"
    try:
        fcntl.ioctl(sock, _SIOCGIFADDR, request)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise OSError(f"{name} has no PAN or no short address: {do}") from error
        raise
    found = _REQUEST.unpack(request)[3]
    if found != pan:
        raise OSError(f"{name} is in PAN {found:#06x}, not {pan:#06x}: {do}")


def trouble(name: str, pan: int) -> str:
    """Return why a radio cannot be used now, and what to do; "" if it can."""
    try:
        with contextlib.closing(make_socket()) as sock:
            find(name, pan, sock)
    except OSError as error:
        return words_of(error)
    return ""
