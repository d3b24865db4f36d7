"""The netlink request that restarts a CAN controller after a bus-off (linux/can/netlink.h), no I/O.

It does what `ip link set can0 type can restart` does: RTM_NEWLINK with IFLA_LINKINFO, of kind "can", and
IFLA_CAN_RESTART in it.
"""

from struct import Struct

_HEADER, _LINK, _ATTRIBUTE, _RESULT = Struct("=IHHII"), Struct("=BxHiII"), Struct("=HH"), Struct("=i")
_NEWLINK, _ERROR = 16, 2
_REQUEST_AND_ACKNOWLEDGE = 0x05
_LINKINFO, _INFO_KIND, _INFO_DATA, _CAN_RESTART = 18, 1, 2, 7


def restart_request(index: int, sequence: int = 1) -> bytes:
    """Return the request for the interface with that index. The kernel answers it with a `result`."""
    data = _attribute(_CAN_RESTART, _RESULT.pack(1))
    info = _attribute(_INFO_KIND, b"can\0") + _attribute(_INFO_DATA, data)
    body = _LINK.pack(0, 0, index, 0, 0) + _attribute(_LINKINFO, info)
    return _HEADER.pack(_HEADER.size + len(body), _NEWLINK, _REQUEST_AND_ACKNOWLEDGE, sequence, 0) + body


def result(answer: bytes) -> int | None:
    """Return the errno in the kernel's answer, 0 for success; None if the answer has no result."""
    if len(answer) < _HEADER.size + _RESULT.size or _HEADER.unpack_from(answer)[1] != _ERROR:
        return None
    return -int(_RESULT.unpack_from(answer, _HEADER.size)[0])


def _attribute(kind: int, value: bytes) -> bytes:
    # No padding: each value here is a multiple of four bytes.
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value
