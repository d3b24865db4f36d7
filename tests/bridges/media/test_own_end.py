"""Whatever dials a port at which nobody listens, and is connected to itself by chance, counts it as refused.

The kernel then gave the socket of the dialler the very port that it dials.
"""

import socket
from asyncio import get_running_loop
from collections.abc import Callable
from typing import Any

import pytest

from bridges.media.can import socketcand
from bridges.media.can.medium import Can
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.medium import Uart
from bridges.protocols.lines.protocol import Lines
from bus.hub import Hub
from bus.ledger import Stats
from bus.tmq.options import Options
from bus.tmq.peer import Peer, PeerOwner, PeerSetup
from bus.tmq.wire import MESSAGE, Hello
from bus.transports.dialling import DialLink
from bus.wire.frame import pack
from tests.helpers.own_end import dial_themselves, may_listen
from tests.helpers.peers import until
from tests.helpers.ports import free_port

REFUSED = "Connection refused"


@pytest.fixture(autouse=True)
def chance(monkeypatch: pytest.MonkeyPatch) -> None:
    dial_themselves(monkeypatch)


MADE: dict[str, Callable[[int], Any]] = {
    "bus": lambda port: DialLink(f"tcp://127.0.0.1:{port}", retry_min_s=5.0),
    "websocket": lambda port: DialLink(f"ws://127.0.0.1:{port}", retry_min_s=5.0),
    "tcp": lambda port: Tcp(host="127.0.0.1", port=port).link(retry_min_s=5.0),
    "tcp of a device": lambda port: Tcp(host="127.0.0.1", port=port).speaking(Lines(), retry_min_s=5.0),
    "slcan": lambda port: Can(channel=f"socket://127.0.0.1:{port}", interface="slcan", node=7).link(
        retry_min_s=5.0
    ),
    "uart": lambda port: Uart(port=f"socket://127.0.0.1:{port}").link(retry_min_s=5.0),
    "rfc2217": lambda port: Uart(port=f"rfc2217://127.0.0.1:{port}").link(retry_min_s=5.0),
}


@pytest.mark.parametrize("kind", MADE)
async def test_a_link(kind: str) -> None:
    hub, port = Hub(), free_port()
    link = MADE[kind](port)
    link.open(hub, get_running_loop())
    try:
        await until(lambda: REFUSED in (link.fault or ""))
        assert not hub.pipes
        assert may_listen(port)
    finally:
        link.close()


async def test_a_client_of_tmq() -> None:
    reasons, port, stats = list[str](), free_port(), Stats()

    class Owner(PeerOwner):
        def peer_failed(self, _peer: Peer, reason: str) -> None:
            reasons.append(reason)

    setup = PeerSetup(
        get_running_loop(),
        Options(),
        lambda flags: Hello(1, 1000, flags),
        stats,
        Owner(),
        lambda *_: None,
        False,
    )
    peer = Peer(("127.0.0.1", port), setup)
    peer.send(pack(MESSAGE, (1,), b"1"))
    await until(lambda: bool(reasons))
    assert REFUSED in reasons[0]
    assert may_listen(port)
    peer.close()


def test_socketcand() -> None:
    port = free_port()
    sock = socket.socket()
    with pytest.raises(ConnectionRefusedError):
        socketcand.connect(sock, "127.0.0.1", port)
    assert may_listen(port)
