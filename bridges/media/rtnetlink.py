"""Messages of Linux's rtnetlink(7): news of interfaces and addresses, and the restart of a CAN controller.

Pure: requests as bytes, and parsing of what the kernel sends.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from struct import Struct
from typing import NamedTuple

NEW_LINK, DELETE_LINK, GET_LINK = 16, 17, 18
NEW_ADDRESS, DELETE_ADDRESS, GET_ADDRESS = 20, 21, 22
DONE, ERROR = 3, 2
UP, LOOPBACK, RUNNING, MULTICAST = 0x1, 0x8, 0x40, 0x1000
TENTATIVE, FAILED = 0x40, 0x08
GROUPS = 0x111  # links, IPv4 addresses, IPv6 addresses

_HEADER = Struct("=IHHII")
_LINK = Struct("=BxHiII")
_ADDRESS = Struct("=BBBBI")
_ATTRIBUTE = Struct("=HH")
_I32 = Struct("=i")
_U32 = Struct("=I")
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ACKNOWLEDGED = 0x05  # NLM_F_REQUEST | NLM_F_ACK
_IFLA_NAME, _IFLA_MTU, _IFLA_LINKINFO = 3, 4, 18
_INFO_KIND, _INFO_DATA, _CAN_RESTART = 1, 2, 7
_CAN_MODE, LISTEN_ONLY, FD = 5, 0x02, 0x20  # IFLA_CAN_CTRLMODE: mask and flags
_CAN_RATE, _CAN_DATA_RATE = 1, 9  # IFLA_CAN_BITTIMING and _DATA_BITTIMING, which begin with the bit rate
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS = 1, 2, 8

Address = IPv4Address | IPv6Address


class LinkNews(NamedTuple):
    """An interface as it is now; with `gone`, as it was before it disappeared."""

    ifindex: int
    name: str
    flags: int
    mtu: int
    gone: bool


class AddressNews(NamedTuple):
    """An address that an interface has; with `gone`, an address that it lost."""

    ifindex: int
    address: Address
    flags: int
    gone: bool


class Controller(NamedTuple):
    """An interface as a CAN controller: its kind, such as vcan, the flags of its mode, and bits a second.

    What is unknown is "" or 0.
    """

    kind: str = ""
    mode: int = 0
    bitrate: int = 0
    data_bitrate: int = 0


class DumpEnd(NamedTuple):
    """The end of a dump: `errno` is 0 if it is complete, else the error."""

    errno: int


News = LinkNews | AddressNews | DumpEnd


def request(kind: int) -> bytes:
    """Return a request for all links (`GET_LINK`) or all addresses (`GET_ADDRESS`)."""
    body = _LINK.pack(0, 0, 0, 0, 0) if kind == GET_LINK else _ADDRESS.pack(0, 0, 0, 0, 0)
    return _message_of(kind, _DUMP, 1, body)


def restart_request(index: int, sequence: int = 1) -> bytes:
    """Return the request to restart a CAN controller after a bus-off; `index` is that of the interface.

    It does what `ip link set can0 type can restart` does (linux/can/netlink.h): RTM_NEWLINK with
    IFLA_LINKINFO, of kind "can", and IFLA_CAN_RESTART in it. The kernel's answer holds a `result`.
    """
    data = _attribute(_CAN_RESTART, _I32.pack(1))
    info = _attribute(_INFO_KIND, b"can\0") + _attribute(_INFO_DATA, data)
    body = _LINK.pack(0, 0, index, 0, 0) + _attribute(_IFLA_LINKINFO, info)
    return _message_of(NEW_LINK, _ACKNOWLEDGED, sequence, body)


def link_request(index: int, sequence: int = 1) -> bytes:
    """Return the request for one interface."""
    return _message_of(GET_LINK, 1, sequence, _LINK.pack(0, 0, index, 0, 0))


def controller_in(answer: bytes) -> Controller:
    """Return what the kernel's answer says of an interface as a CAN controller."""
    found = _attributes(answer, _HEADER.size + _LINK.size)
    info = _attributes(found.get(_IFLA_LINKINFO, b""), 0)
    data = _attributes(info.get(_INFO_DATA, b""), 0)
    rates = (_u32(data.get(key, b"")) for key in (_CAN_RATE, _CAN_DATA_RATE))
    kind = info.get(_INFO_KIND, b"").rstrip(b"\0").decode(errors="replace")
    return Controller(kind, _u32(data.get(_CAN_MODE, b"")[4:]), *rates)


def result(answer: bytes) -> int | None:
    """Return the errno in the kernel's answer, 0 for success; None if the answer has no result."""
    if len(answer) < _HEADER.size + _I32.size or _HEADER.unpack_from(answer)[1] != ERROR:
        return None
    return -int(_I32.unpack_from(answer, _HEADER.size)[0])


def _message_of(kind: int, flags: int, sequence: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, sequence, 0) + body


def _attribute(kind: int, value: bytes) -> bytes:
    # No padding: each value here is a multiple of four bytes.
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value


def parse(data: bytes) -> Iterator[News]:
    """Yield the news in one datagram of the kernel. Skips messages about other things."""
    start = 0
    while start + _HEADER.size <= len(data):
        size, kind, _, _, _ = _HEADER.unpack_from(data, start)
        if size < _HEADER.size:
            return
        news = _message(kind, data[start + _HEADER.size : start + size])
        if news is not None:
            yield news
        start += size + 3 & ~3


def _message(kind: int, body: bytes) -> News | None:
    if kind in (NEW_LINK, DELETE_LINK) and len(body) >= _LINK.size:
        return _link(body, kind == DELETE_LINK)
    if kind in (NEW_ADDRESS, DELETE_ADDRESS) and len(body) >= _ADDRESS.size:
        return _address(body, kind == DELETE_ADDRESS)
    if kind in (DONE, ERROR):
        return DumpEnd(-_I32.unpack_from(body)[0] if kind == ERROR and len(body) >= _I32.size else 0)
    return None


def _link(body: bytes, gone: bool) -> LinkNews | None:
    family, _, index, flags, _ = _LINK.unpack_from(body)
    if family:  # a bridge reports its ports like this, and a port that leaves it as deleted
        return None
    found = _attributes(body, _LINK.size)
    name = found.get(_IFLA_NAME, b"").rstrip(b"\0").decode(errors="replace")
    return LinkNews(index, name, flags, _u32(found.get(_IFLA_MTU, b"")), gone)


def _address(body: bytes, gone: bool) -> AddressNews | None:
    _, _, flags, _, index = _ADDRESS.unpack_from(body)
    found = _attributes(body, _ADDRESS.size)
    raw = found.get(_IFA_LOCAL, found.get(_IFA_ADDRESS, b""))  # ADDRESS is the peer's, if there is one
    if len(raw) not in (4, 16):
        return None
    return AddressNews(index, ip_address(raw), _u32(found.get(_IFA_FLAGS, b"")) or flags, gone)


def _attributes(body: bytes, start: int) -> dict[int, bytes]:
    found = {}
    while start + _ATTRIBUTE.size <= len(body):
        size, kind = _ATTRIBUTE.unpack_from(body, start)
        if size < _ATTRIBUTE.size:
            break
        found[kind & 0x3FFF] = body[start + _ATTRIBUTE.size : start + size]
        start += size + 3 & ~3
    return found


def _u32(raw: bytes) -> int:
    return int(_U32.unpack_from(raw)[0]) if len(raw) >= _U32.size else 0
