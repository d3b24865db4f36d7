"""Ports for tests. They are outside the range from which the kernel gives ports to who connects: those it may
give to another process between the test's look and its use."""

import socket
from random import SystemRandom
from typing import Final

_PORTS: Final = range(12_000, 32_000)
_KINDS: Final = (socket.SOCK_STREAM, socket.SOCK_DGRAM)
_given: set[int] = set()


def free_port() -> int:
    """Return a port that is free for TCP and UDP, and that this process was not given before."""
    while True:
        port = SystemRandom().choice(_PORTS)
        if port not in _given and all(_is_free(port, kind) for kind in _KINDS):
            _given.add(port)
            return port


def _is_free(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
