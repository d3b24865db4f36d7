"""A tunnel whose other side asks and never reads: what waits for it is bounded."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

import pytest

from devices.dbp.nodes.listing import Address
from devices.dbp.proxy import tunnel, wire
from devices.dbp.proxy.tunnel import Tunnel
from devices.dbp.proxy.wire import Hello, Target


class Nothing:
    """A near side that offers nothing."""

    def met(self, tunnel: Tunnel, hello: Hello) -> str:
        return ""

    def offered(self, tunnel: Tunnel, services: dict[str, dict[str, Any]]) -> None:
        pass

    def address_of(self, target: Target) -> Address | None:
        return None


@pytest.mark.parametrize("asked", [wire.pack(wire.PING), wire.pack_open(1, Target("none", "router"))])
async def test_an_end_that_reads_no_answers_is_disconnected(
    asked: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tunnel, "WAITING_BYTES", 1 << 16)
    near, far = socket.socketpair()  # which holds a part of that
    far.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=near)
    one = Tunnel(reader, writer, False, Hello("near", "near end"), Nothing())
    served = asyncio.ensure_future(one.run())
    with far, suppress(OSError):
        said = wire.pack_hello(Hello("far", "far end")) + asked * (400_000 // len(asked))
        await asyncio.get_running_loop().sock_sendall(far, said)
    assert await served == "the other side reads too slowly"
    assert one.refused["slow reader"] == 1
