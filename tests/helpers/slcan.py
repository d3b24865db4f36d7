"""A CAN bus of adapters that speak slcan: a TCP server between them."""

import asyncio
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.helpers.peers import until


class Wire:
    """A CAN bus as a TCP server, which relays the frames of each slcan adapter to the others."""

    def __init__(self) -> None:
        self.sides: list[StreamWriter] = []
        self.heard = b""
        self.url = ""

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.sides.append(writer)
        try:
            while True:
                line = await reader.readuntil(b"\r")
                self.heard += line
                for side in self.sides:
                    if side is not writer and line[:1] not in b"COSY\r":
                        side.write(line)
        except (OSError, IncompleteReadError):
            pass
        finally:
            self.sides.remove(writer)
            writer.close()

    def say(self, line: bytes) -> None:
        for side in self.sides:
            side.write(line)

    def unplug(self) -> None:
        for side in self.sides:
            side.close()


@asynccontextmanager
async def relay() -> AsyncIterator[Wire]:
    made = Wire()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"socket://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield made
    server.close()
    await until(lambda: not made.sides)
