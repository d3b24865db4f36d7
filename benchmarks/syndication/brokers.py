"""The brokers that the benchmark of syndication starts itself.

`python -m benchmarks.syndication.brokers plain PORT` is the least that can be called a broker, as a
yardstick: what a client publishes goes to all that have sent a string. `... wide PORT` is ours, with bounds
for 10,000 subscribers.
"""

import asyncio
import sys
from typing import Any, Final

import msgpack

from benchmarks.command import run_as_command
from benchmarks.systems import raise_file_limit
from bus.serving.limits import Limits
from devices.syndication.bounds import Bounds
from devices.syndication.device import SyndicationSpec
from devices.syndication.service import Syndication

PEERS: Final = 16_000
SPARE_FILES: Final = 100


class Plain(asyncio.Protocol):
    """A connection to the yardstick. `subscribers` are those of all."""

    def __init__(self, subscribers: dict[asyncio.Transport, None]) -> None:
        self._subscribers = subscribers
        self._unpacker = msgpack.Unpacker(strict_map_key=False)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._unpacker.feed(data)
        for message in self._unpacker:
            if isinstance(message, str):
                self._subscribers[self._transport] = None
                self._transport.write(msgpack.packb({"New": [], "Del": []}))
            else:
                packed = msgpack.packb(message)
                for transport in self._subscribers:
                    transport.write(packed)

    def connection_lost(self, _: Exception | None) -> None:
        self._subscribers.pop(self._transport, None)


async def plain(port: int) -> None:
    subscribers: dict[asyncio.Transport, None] = {}
    server = await asyncio.get_running_loop().create_server(lambda: Plain(subscribers), "127.0.0.1", port)
    await server.serve_forever()


async def wide(port: int) -> None:
    raise_file_limit(PEERS + SPARE_FILES)
    spec = SyndicationSpec(on="", syndication=(f"tcp://127.0.0.1:{port}",))
    bounds = Bounds(queries=PEERS, queries_per_host=PEERS, speakers=PEERS, speakers_per_host=PEERS)
    service = Syndication("wide", spec, bounds, Limits(connections=PEERS))
    service.start(asyncio.get_running_loop())
    await asyncio.Event().wait()


def main() -> int:
    kind, port = sys.argv[1:]
    asyncio.run({"plain": plain, "wide": wide}[kind](int(port)))
    return 0


if __name__ == "__main__":
    run_as_command(main)
