"""The mode and rates of a SocketCAN controller, and whether it acknowledges nothing (linux/can/netlink.h)."""

import socket

from bridges.media.rtnetlink import LISTEN_ONLY, Controller, controller_in, link_request

VIRTUAL = ("vcan", "vxcan")
_ANSWER_S = 1.0
_ANSWER_BYTES = 65536


def trouble(interface: str) -> str:
    """Return why a controller may acknowledge frames, and what to do about it; "" if it does not.

    Virtual interfaces have no controller, and acknowledge nothing. An interface that is not there is no
    trouble of this kind.
    """
    found = controller_of(interface)
    if not found.kind or found.kind in VIRTUAL or found.mode & LISTEN_ONLY:
        return ""
    down, up = f"ip link set {interface} down", f"ip link set {interface} up type can listen-only on"
    return f"{interface} acknowledges frames, and listen_only forbids that: run {down}; {up}"


def controller_of(interface: str) -> Controller:
    """Return what the kernel knows of an interface as a CAN controller; nothing if there is none.

    The kind of a driver that tells none is `can`.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
            sock.settimeout(_ANSWER_S)
            sock.send(link_request(socket.if_nametoindex(interface)))
            found = controller_in(sock.recv(_ANSWER_BYTES))
    except OSError:
        return Controller()
    return found if found.kind else found._replace(kind="can")
