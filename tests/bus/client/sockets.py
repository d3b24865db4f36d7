"""What the tests of the application's socket share."""

from bus.client.socket import Bus, RawBus
from bus.wire.pattern import Pattern

WAIT_S = 30.0
LOOPBACK = "tcp://127.0.0.1:0"
TEMP = Pattern("fridge", "temp")


def connected(*sockets: tuple[Bus | RawBus, int]) -> None:
    for socket, peers in sockets:
        assert socket.wait_peers(peers, WAIT_S)
