"""Whether a SocketCAN controller acknowledges nothing: the kernel knows its mode (linux/can/netlink.h)."""

import socket

from bridges.media.rtnetlink import LISTEN_ONLY, can_mode, link_request

VIRTUAL = ("vcan", "vxcan")
_ANSWER_S = 1.0
_ANSWER_BYTES = 65536


def trouble(interface: str) -> str:
    """Return why a controller may acknowledge frames, and what to do about it; "" if it does not.

    Virtual interfaces have no controller, and acknowledge nothing. An interface that is not there is no
    trouble of this kind.
    """
    kind, mode = kind_of(interface)
    if not kind or kind in VIRTUAL or mode & LISTEN_ONLY:
        return ""
    down, up = f"ip link set {interface} down", f"ip link set {interface} up type can listen-only on"
    return f"{interface} acknowledges frames, and listen_only forbids that: run {down}; {up}"


def kind_of(interface: str) -> tuple[str, int]:
    """Return the kind of an interface, such as vcan, and the mode flags of its controller.

    The kind of a driver that tells none is `can`. If there is no such interface, these are "" and 0.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
            sock.settimeout(_ANSWER_S)
            sock.send(link_request(socket.if_nametoindex(interface)))
            kind, mode = can_mode(sock.recv(_ANSWER_BYTES))
    except OSError:
        return "", 0
    return kind or "can", mode
