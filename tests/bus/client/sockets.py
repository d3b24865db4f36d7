"""What the tests of the application's socket share."""

import time
from collections.abc import Callable

from bus.client.socket import Bus, RawBus
from bus.wire.pattern import Pattern

WAIT_S = 10.0
LOOPBACK = "tcp://127.0.0.1:0"
TEMP = Pattern("fridge", "temp")


def eventually(condition: Callable[[], bool]) -> None:
    """Poll for at most `WAIT_S`, because NNG's threads work asynchronously."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.002)


def connected(*sockets: tuple[Bus | RawBus, int]) -> None:
    for socket, peers in sockets:
        assert socket.wait_peers(peers, WAIT_S)
