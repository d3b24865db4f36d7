"""Watches nodes: reads the liveness of services from a catalog, and messages from mirrors."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import Final

from devices.dbp.catalog import wire
from devices.dbp.catalog.entry import LIVENESS
from devices.dbp.catalog.wire import Command
from devices.dbp.monitor.wire import WORD, Grant, Life, Passed, parse, read_grant, read_lives
from devices.dbp.nodes.client import Client
from devices.dbp.nodes.listing import Address
from devices.dbp.nodes.presence import NodeError
from devices.dbp.zeromq.limits import Limits

_MIRROR: Final = Limits(message_bytes=8 << 20, frames=512)
"""The limits of copies, which are longer than what they are copies of: a catalog's list is among them."""


async def lives(client: Client) -> dict[str, Life]:
    """Return the liveness of the listed services by name. Raises `NodeError` if the catalog does not tell."""
    received = await client.tell(Command(wire.INFO_REQUEST, (LIVENESS.encode(),)))
    found = read_lives(received.fields)
    if not found and "Error" in received.fields:
        raise NodeError("this catalog does not tell how services live")
    return found


async def mirrored(client: Client, name: str | None, interface: str) -> AsyncGenerator[Passed, None]:
    """Yield the messages at an interface of the service `name`, or of the catalog itself (None).

    The mirror's lease is renewed until the iteration ends. Raises `NodeError` if there is no mirror.
    """
    host, grant = await _granted(client, name, interface)
    renewing = asyncio.ensure_future(_renew(client, name, interface, grant))
    try:
        address = grant.host or host, grant.port
        async with aclosing(client.hear(address, interface.encode(), _MIRROR)) as received:
            while True:
                passed = parse(await _unless(renewing, anext(received)))
                if passed is not None and passed.interface == interface:
                    yield passed
    finally:
        renewing.cancel()


async def _unless(renewing: asyncio.Task[None], frames: Awaitable[list[bytes]]) -> list[bytes]:
    """Return the next frames. Raises the error of the renewal if that ends before."""
    hearing = asyncio.ensure_future(frames)
    await asyncio.wait((hearing, renewing), return_when=asyncio.FIRST_COMPLETED)
    if not hearing.done():
        hearing.cancel()
        await asyncio.wait((hearing,))
        renewing.result()
    return hearing.result()


async def _renew(client: Client, name: str | None, interface: str, grant: Grant) -> None:
    while True:
        await asyncio.sleep(grant.lease_ms / 3000)
        await _granted(client, name, interface)


async def _granted(client: Client, name: str | None, interface: str) -> tuple[str, Grant]:
    """Request a mirror, or a further lease. Return its host and the grant."""
    if name is None:
        host, answer = await _ask_catalog(client, interface)
    else:
        host, answer = await _ask_service(client, name, interface)
    grant = read_grant(answer)
    if grant is None:
        raise NodeError(f"{name or 'the catalog'} gave a malformed answer to the request for a mirror")
    return host, grant


async def _ask_catalog(client: Client, interface: str) -> tuple[str, bytes]:
    received = await client.tell(Command(wire.MONITOR, (interface.encode(),)))
    if received.word != wire.MONITOR:
        raise NodeError(f"the catalog refused: {'; '.join(received.texts) or 'it gives no mirror'}")
    return client.host, "".join(received.texts).encode()


async def _ask_service(client: Client, name: str, interface: str) -> tuple[str, bytes]:
    router: Address | None = (await client.find(name)).router
    if router is None:
        raise NodeError(f"{name} has no interface router")
    return router[0], b"".join(await client.ask(name, WORD, interface.encode()))
