"""Server-sent events for all status pages that are open: one status a second, made once for all of them."""

import json
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from typing import Final, Protocol

from appliance.status.snapshot import snapshot
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
        self.viewers: dict[Viewer, None] = {}
        self._model = PageModel()
        self._timer: TimerHandle | None = None

    def add(self, viewer: Viewer) -> None:
        """Send a new viewer the whole status, and from then on the changes."""
        if self._timer is None:
            self._tick()
        self.viewers[viewer] = None
        viewer.give(event(self._model.first()))

    def remove(self, viewer: Viewer) -> None:
        """Send nothing more to a viewer. Do nothing if the viewer is unknown."""
        self.viewers.pop(viewer, None)

    def _tick(self) -> None:
        others = {} if self._view.plant is None else self._view.plant.marks()
        data = event(self._model.take(snapshot(self._view, 0), others))
        for viewer in list(self.viewers):
            if viewer.waiting_bytes > QUEUE_BYTES:
                self._on_slow()
                self.remove(viewer)
                viewer.close()
            else:
                viewer.give(data)
        self._timer = self._loop.call_later(TICK_S, self._next)

    def _next(self) -> None:
        self._timer = None
        if self.viewers:
            self._tick()

    def close(self) -> None:
        """Close all viewers. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for viewer in list(self.viewers):
            self.remove(viewer)
            viewer.close()


def event(fields: object) -> bytes:
    """Return the bytes of one server-sent event."""
    return b"data: " + json.dumps(plain_values(fields), separators=(",", ":")).encode() + b"\n\n"
