"""Connecting to socketcand once, within a bound.

python-can itself tries for 10 s without a pause, and then waits for ever for what the server says.
"""

import socket
from importlib import import_module

from bus.machine.addresses import refuse_itself

_CONNECT_S = 5.0


def connect_once() -> None:
    """Make python-can connect as `connect` does."""
    vars(import_module("can.interfaces.socketcand.socketcand"))["connect_to_server"] = connect


def connect(sock: socket.socket, host: str, port: int) -> None:
    """Connect a socket, and bound all its later waits too. Raises `OSError`."""
    sock.settimeout(_CONNECT_S)
    try:
        sock.connect((host, port))
        refuse_itself(sock)
    except OSError:
        sock.close()
        raise
