"""A TCP relay between a client and a broker, which can be shut: the network of a test."""

import asyncio
from contextlib import suppress


class Gate:
    """Passes connections on to a port while it is open. `cut` ends those that are there."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._tasks = set[asyncio.Task[None]]()
        self.is_open = True

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(OSError, asyncio.CancelledError):
            if self.is_open:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
                await asyncio.wait(
                    [
                        asyncio.create_task(_pass(*way))
                        for way in ((reader, far_writer), (far_reader, writer))
                    ],
                    return_when=asyncio.FIRST_COMPLETED,
                )
                far_writer.close()
        writer.close()
        self._tasks.discard(task)

    def cut(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    def close(self) -> None:
        self.cut()
        self._server.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
