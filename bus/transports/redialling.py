"""A connection that is made again and again, with pauses."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Redialling(Generic[T]):
    """One connection at a time, made anew after its end and a pause, until `run` is cancelled.

    `connect()` makes it; `serve(made)` lets it run to its end, and returns whether it was of use; both may
    raise `OSError`, or `UnicodeError` for a name that cannot be looked up, of which `failed(error)` hears.
    `after(lasted)` returns the pause that follows, in seconds, as `Attempts.after` does.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[T]],
        serve: Callable[[T], Awaitable[bool]],
        failed: Callable[[OSError | UnicodeError], object],
        after: Callable[[bool], float],
    ) -> None:
        self._connect, self._serve, self._failed, self._after = connect, serve, failed, after
        self._hurried = asyncio.Event()

    async def run(self) -> None:
        """Keep connected until cancelled."""
        while True:
            pause_s = self._after(await self._attempt())
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._hurried.wait()

    async def _attempt(self) -> bool:
        self._hurried.clear()
        try:
            lasted = await self._serve(await self._connect())
            self._hurried.clear()
            return lasted
        except (OSError, UnicodeError) as error:
            self._failed(error)
            return False

    def hurry(self) -> None:
        """End the pause, if there is one; an attempt that is being made, and fails, is followed at once."""
        self._hurried.set()
