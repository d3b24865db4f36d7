"""What asyncio's servers of tests have accepted ends with the loop of the test."""

import asyncio
import gc
import socket
from contextlib import suppress

import pytest


@pytest.mark.parametrize("turns", range(5))
def test_a_connection_that_came_last_is_no_leak(turns: int) -> None:
    async def late() -> socket.socket:
        server = await asyncio.start_server(lambda *_: asyncio.sleep(60), "127.0.0.1", 0)
        client = socket.create_connection(server.sockets[0].getsockname(), 20)
        for _ in range(turns):
            await asyncio.sleep(0)
        server.close()
        return client

    with asyncio.Runner() as runner:
        client = runner.run(late())
    gc.collect()  # what is left is told here
    with client, suppress(ConnectionResetError):
        assert client.recv(1) == b""
