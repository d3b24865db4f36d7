"""The words of attackers and honest pairs to a gateway: connections, greetings and frames by hand."""

import socket
import struct
import time
from collections.abc import Mapping

from bus.wire.frame import pack
from bus.wire.pattern import token
from bus.wire.sp import HANDSHAKE

Ports = Mapping[str, int]

GROUP = "239.255.91.23"
STRANGER, HONEST = "127.0.0.1", "127.0.0.9"
PATTERN = (token("honest"), 1)
READY = b"\5READY\x0bSocket-Type\0\0\0\6DEALER\x08Identity\0\0\0\0"
ZMTP = b"\xff\0\0\0\0\0\0\0\0\x7f\3\0NULL" + bytes(48) + bytes((4, len(READY))) + READY
QUESTION = b"\1\0\1\3u_U\1\0030.0\0\0"
TMQ_HELLO = b"\x10\0\0\x08\1\0\xea\x60\0\0\0\7"


def connected(port: int, host: str, timeout_s: float = 5.0) -> socket.socket:
    """Return a connection from an address of this machine to a port of it."""
    sock = socket.create_connection(("127.0.0.1", port), timeout_s, source_address=(host, 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def greeted(port: int, host: str) -> socket.socket:
    """Return a connection to a bus after its handshake."""
    sock = connected(port, host)
    sock.sendall(HANDSHAKE)
    exactly(sock, len(HANDSHAKE))
    return sock


def exactly(sock: socket.socket, size: int) -> bytes:
    """Read so many bytes. Raises `OSError` if the connection ends before."""
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError("closed")
        data += more
    return data


def message_from(sock: socket.socket) -> bytes:
    """Read the next message of a bus."""
    return exactly(sock, struct.unpack(">Q", exactly(sock, 8))[0])


def framed(message: bytes) -> bytes:
    """Return a message as it goes to a bus."""
    return struct.pack(">Q", len(message)) + message


def sender_to_group(host: str) -> socket.socket:
    """Return a socket that sends to the group on the loopback interface."""
    sock = bound(host)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
    return sock


def bound(host: str) -> socket.socket:
    """Return a socket for datagrams at an address of this machine."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    return sock


def beat(name: str) -> bytes:
    """Return the heartbeat of a service, by UDP."""
    return f"<3 {time.time():.3f} {name}".encode()


def honest_frame(number: int, size: int = 4) -> bytes:
    """Return a frame of the honest pair."""
    return pack(2, PATTERN, number.to_bytes(4, "big").ljust(size, b"z"))
