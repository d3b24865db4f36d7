"""A socket that closes while its peer talks: what it sent still comes."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from bus.client.socket import Bus
from bus.transports.nng_socket import ClosedError
from bus.urls import url_host
from tests.bus.client.sockets import WAIT_S
from tests.helpers.peers import wait
from tests.helpers.talker import greeted, read, talk

COUNT = 400
CLOSES: dict[str, Callable[[Bus], None]] = {
    "close": Bus.close,
    "aclose": lambda bus: asyncio.run(bus.aclose()),
}


@pytest.fixture(params=[socket.AF_INET, socket.AF_INET6], ids=["IPv4", "IPv6"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    with socket.create_server(
        ("::1" if request.param == socket.AF_INET6 else "127.0.0.1", 0), family=request.param
    ) as made:
        # Most of what comes waits at the sender.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        made.settimeout(WAIT_S)
        yield made


def url_of(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"tcp://{url_host(host)}:{port}"


@pytest.mark.parametrize("name", CLOSES)
def test_what_was_sent_comes_although_the_peer_talks(listener: socket.socket, name: str) -> None:
    bus = Bus(dial=url_of(listener), linger_s=WAIT_S)
    with greeted(listener) as peer:
        assert bus.wait_peers(1, WAIT_S)
        talker = threading.Thread(target=talk, args=(peer,))
        talker.start()
        for number in range(COUNT):
            bus.send(("a",), b"%07d" % number + bytes(993))
        closer = threading.Thread(target=CLOSES[name], args=(bus,))
        closer.start()
        wait(lambda: is_closing(bus))
        heard_bytes = read(peer)
        closer.join(WAIT_S)
    talker.join(WAIT_S)
    assert heard_bytes == COUNT * (8 + 8 + 1000)


def is_closing(bus: Bus) -> bool:
    try:
        return not bus.wait_peers(0, 0)
    except ClosedError:
        return True
