"""A `query` as a process: what it prints, and how it ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.helpers.programs import COMMAND

_PIPE = asyncio.subprocess.PIPE


class Asking:
    """A running `query`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def lines(self, count: int) -> list[str]:
        """Return the next lines of its output."""
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            return [(await self.process.stdout.readline()).decode().rstrip() for _ in range(count)]

    async def end(self) -> tuple[int | None, list[str], str]:
        """Return its exit status, the rest of its output, and what it complained."""
        output, errors = await self.process.communicate()
        return self.process.returncode, output.decode().splitlines(), errors.decode()


@asynccontextmanager
async def asking(*words: str) -> AsyncIterator[Asking]:
    started = await asyncio.create_subprocess_exec(*COMMAND, "query", *words, stdout=_PIPE, stderr=_PIPE)
    try:
        yield Asking(started)
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


async def asked(*words: str) -> tuple[int | None, list[str], str]:
    async with asking(*words) as asker:
        return await asker.end()
