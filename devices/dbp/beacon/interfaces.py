"""The IPv4 addresses of this machine, and the broadcast address for each."""

import array
import fcntl
import socket
import struct
from typing import Final, NamedTuple

_MOST: Final = 256  # addresses that are read
_NAME_BYTES: Final = 16
_REQUEST_BYTES: Final = 40 if struct.calcsize("P") == 8 else 32  # struct ifreq, netdevice(7)
_CONFIGURED, _FLAGS = 0x8912, 0x8913  # SIOCGIFCONF, SIOCGIFFLAGS
_UP, _HAS_BROADCAST, _LOOPBACK = 0x1, 0x2, 0x8


class Interface(NamedTuple):
    """An address of this machine. `broadcast` reaches all neighbours from a socket bound to the address.

    `broadcast` is "" on an interface without, such as a tunnel. Else it is 255.255.255.255, for an address
    may have been set without the broadcast address of its network; on loopback it is 127.255.255.255.
    """

    address: str
    broadcast: str
    is_loopback: bool


def interfaces() -> list[Interface]:
    """Return the addresses of all interfaces that are up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        found = [_interface(sock, name, address) for name, address in _configured(sock)]
    return [one for one in found if one is not None]


def _configured(sock: socket.socket) -> list[tuple[bytes, str]]:
    buffer = array.array("B", bytes(_MOST * _REQUEST_BYTES))
    asked = struct.pack("iP", len(buffer), buffer.buffer_info()[0])
    used = struct.unpack("iP", fcntl.ioctl(sock, _CONFIGURED, asked))[0]
    requests = [buffer[at : at + _REQUEST_BYTES].tobytes() for at in range(0, used, _REQUEST_BYTES)]
    return [(request[:_NAME_BYTES], _address(request)) for request in requests]


def _interface(sock: socket.socket, name: bytes, address: str) -> Interface | None:
    try:
        answer = fcntl.ioctl(sock, _FLAGS, name.ljust(_REQUEST_BYTES, b"\0"))
    except OSError:  # it has gone since it was listed
        return None
    (flags,) = struct.unpack_from("H", answer, _NAME_BYTES)
    if not flags & _UP:
        return None
    if flags & _LOOPBACK:
        return Interface(address, "127.255.255.255", True)
    return Interface(address, "255.255.255.255" if flags & _HAS_BROADCAST else "", False)


def _address(request: bytes) -> str:
    """Return the IPv4 address in a struct ifreq: after the name, the family and the port."""
    return socket.inet_ntoa(request[_NAME_BYTES + 4 : _NAME_BYTES + 8])
