"""The connections that asyncio's servers in tests have accepted: those that are open close with their loop.

A client that dials again and again may do so in the last turns of a test. Nobody has seen such a connection,
so nobody closes it; it would be told as a leak of the test during which it is found. asyncio itself leaves
one open whose server closes between the accepting and the transport.
"""

import asyncio
import socket
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest

TURNS: Final = 3
"""From the accepting to the transport."""
Accept = Callable[..., Coroutine[Any, Any, None]]


def close_with_loops(patch: pytest.MonkeyPatch) -> None:
    """Let each loop close what servers on it have accepted."""
    patch.setattr(asyncio.Runner, "close", _closing(asyncio.Runner.close))
    accept = "_accept_connection2"  # the step that makes the transport
    patch.setattr(BaseSelectorEventLoop, accept, _adopting(getattr(BaseSelectorEventLoop, accept)))


def _closing(close: Callable[[asyncio.Runner], None]) -> Callable[[asyncio.Runner], None]:
    def closed(runner: asyncio.Runner) -> None:
        loop = vars(runner)["_loop"]  # `get_loop` would make one
        if isinstance(loop, BaseSelectorEventLoop) and not loop.is_closed():
            runner.run(_end(loop))
        close(runner)

    return closed


async def _end(loop: BaseSelectorEventLoop) -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
    for transport in list(vars(loop)["_transports"].values()):
        if vars(transport)["_server"] is not None:
            transport.abort()
    await asyncio.sleep(0)


def _adopting(accept: Accept) -> Accept:
    async def accepted(
        loop: Any, make: Any, conn: socket.socket, extra: Any, tls: Any, server: Any, *rest: Any
    ) -> None:
        if server.is_serving():
            await accept(loop, make, conn, extra, tls, server, *rest)
        else:
            conn.close()

    return accepted
