"""Whether a SocketCAN controller acknowledges nothing: the kernel knows its mode (linux/can/netlink.h)."""

import socket

from bridges.media.rtnetlink import LISTEN_ONLY, can_mode, link_request

_ANSWER_S = 1.0
_ANSWER_BYTES = 65536


def trouble(interface: str) -> str:
    """Return why a controller may acknowledge frames, and what to do about it; "" if it does not.

    Virtual interfaces have no controller, and acknowledge nothing. An interface that is not there is no
    trouble of this kind.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
            sock.settimeout(_ANSWER_S)
            sock.send(link_request(socket.if_nametoindex(interface)))
            kind, mode = can_mode(sock.recv(_ANSWER_BYTES))
    except OSError:
        return ""
    if kind in ("vcan", "vxcan") or mode & LISTEN_ONLY:
        return ""
    down, up = f"ip link set {interface} down", f"ip link set {interface} up type can listen-only on"
    return f"{interface} acknowledges frames, and listen_only forbids that: run {down}; {up}"
