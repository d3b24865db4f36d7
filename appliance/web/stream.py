"""Server-sent events for all status pages that are open: one status a second, made once for all of them."""

import asyncio
import json
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from appliance.status.turns import snapshot_in_turns
from appliance.status.view import View
from appliance.web.page_model import PageModel
from bus.text import plain_values

TICK_S: Final = 1.0
QUEUE_BYTES: Final = 1 << 20
"""A page that leaves more than this unread is closed. Browsers open it again."""


class Viewer(Protocol):
    """An open page."""

    @property
    def waiting_bytes(self) -> int: ...
    def give(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class Stream:
    """The stream of events to all viewers, one a second while there are any.

    `on_slow` is called for each viewer that is closed because it does not read.
    """

    def __init__(self, view: View, loop: AbstractEventLoop, on_slow: Callable[[], None]) -> None:
        self._view, self._loop, self._on_slow = view, loop, on_slow
        self.viewers = set[Viewer]()
        self._model = PageModel()
        self._task: Task[None] | None = None

    def add(self, viewer: Viewer) -> None:
        """Send a new viewer the whole status, and from then on the changes."""
        if self._task is None:
            self._model, self._task = PageModel(), self._loop.create_task(self._run())
        self.viewers.add(viewer)
        if self._model.knows:
            viewer.give(event(self._model.first()))

    def remove(self, viewer: Viewer) -> None:
        """Send nothing more to a viewer. Do nothing if the viewer is unknown."""
        self.viewers.discard(viewer)

    async def _run(self) -> None:
        try:
            while self.viewers:
                await self._tick()
                await asyncio.sleep(TICK_S)
        finally:
            self._task = None

    async def _tick(self) -> None:
        status = await snapshot_in_turns(self._view, 0)
        others = {} if self._view.plant is None else dict(self._view.plant.marks())
        changes = await asyncio.to_thread(self._changes, status, others)
        for viewer in list(self.viewers):
            if viewer.waiting_bytes > QUEUE_BYTES:
                self._on_slow()
                self.remove(viewer)
                viewer.close()
            else:
                viewer.give(changes)

    def _changes(self, status: Mapping[str, Any], others: Mapping[str, Any]) -> bytes:
        """Return the event of a status; the first has the whole of it."""
        return event(self._model.take(status, others))

    def close(self) -> None:
        """Close all viewers. Idempotent."""
        if self._task is not None:
            self._task.cancel()
        for viewer in list(self.viewers):
            self.remove(viewer)
            viewer.close()


def event(fields: object) -> bytes:
    """Return the bytes of one server-sent event."""
    return b"data: " + json.dumps(plain_values(fields), separators=(",", ":")).encode() + b"\n\n"
