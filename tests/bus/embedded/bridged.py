"""A bridge between a bus and the serial line of a board."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.bridge import Bridge
from bridges.media.uart.link import UartLink
from bus.client.socket import Bus
from bus.transports.listening import ListenLink
from tests.helpers.links import uart_link
from tests.helpers.peers import until


@asynccontextmanager
async def bridged(path: str) -> AsyncIterator[tuple[Bus, UartLink]]:
    """Run a bridge between a TCP bus and the board's line; yield an application on the bus."""
    bridge, loop = Bridge("panel", origin=0xB0B), asyncio.get_running_loop()
    plant, board = bridge.side("plant"), bridge.side("board")
    listener, uart = ListenLink("tcp://127.0.0.1:0"), uart_link(path, retry_min_s=0.05)
    listener.open(plant, loop)
    uart.open(board, loop)
    try:
        async with Bus(dial=listener.url) as bus:
            await until(lambda: uart.state == "up" and len(plant.ports) == 1)
            yield bus, uart
    finally:
        uart.close()
        listener.close()
