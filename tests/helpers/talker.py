"""A peer that talks all the time, and reads once it is told to.

As a program it prints its port, waits for a line, and prints how many bytes it read.
"""

import socket
import ssl
import struct
import threading
from contextlib import suppress

from bus.transports.on_the_way import on_the_way_bytes
from bus.transports.options import Tls
from tests.helpers.peers import wait

GUARD_S = 30.0
_HELLO = bytes.fromhex("0053500000700000")


def greeted(listener: socket.socket) -> socket.socket:
    """Accept a connection, and greet."""
    peer, _ = listener.accept()
    peer.settimeout(GUARD_S)
    peer.sendall(_HELLO)
    heard = b""
    while len(heard) < len(_HELLO) and (more := peer.recv(len(_HELLO) - len(heard))):
        heard += more
    assert heard == _HELLO
    return peer


def send_whole(peer: socket.socket, data: bytes) -> None:
    """Send, and wait until the other machine has all, which nobody need read there: up to some 50 kB."""
    peer.sendall(data)
    wait(lambda: not on_the_way_bytes(peer.fileno()), GUARD_S)


def over_tls(listener: socket.socket, tls: Tls) -> ssl.SSLSocket:
    """Return a listener whose connections are secure."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert tls.cert_file is not None
    made.load_cert_chain(tls.cert_file)
    return made.wrap_socket(listener, server_side=True)


def talk(peer: socket.socket) -> None:
    """Say more than anybody reads, as long as the connection is there."""
    message = struct.pack(">Q", 1 << 16) + bytes(1 << 16)
    with suppress(OSError):
        while True:
            peer.sendall(message)


def read(peer: socket.socket) -> int:
    """Return how many bytes come until the end, or a reset."""
    heard_bytes = 0
    with suppress(ConnectionResetError):
        while data := peer.recv(1 << 16):
            heard_bytes += len(data)
    return heard_bytes


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        print(listener.getsockname()[1], flush=True)
        with greeted(listener) as peer:
            threading.Thread(target=talk, args=(peer,), daemon=True).start()
            input()
            print(read(peer))


if __name__ == "__main__":
    main()
