"""The process of a tap's writer, as the gateway sees it: it is told how far the ring is filled."""

import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any

from devices.child import Child, Work


class WriterProcess:
    """Keeps one writer running. Raises `LinkError` if a package is missing.

    `settings` are the fields of `devices.tap.writer.Settings`; the writer inherits the descriptors among
    them. `on_line(report)` gets its reports; `on_lost(why)` is called when it ends by itself.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        on_line: Callable[[dict[str, Any]], None],
        on_lost: Callable[[str], None],
    ) -> None:
        work = Work(
            title="the tap's writer",
            module="devices.tap.writer",
            settings=settings,
            descriptors=(settings["descriptor"], settings["names"]),
            loss="what it had not written is lost",
        )
        self._child = Child(work, on_line, on_lost, lambda: self.notice(self._head))
        self._head = 0

    @property
    def pid(self) -> int | None:
        """The process id of the running writer."""
        return self._child.pid

    def open(self, loop: AbstractEventLoop) -> None:
        """Start the writer."""
        self._child.open(loop)

    def notice(self, head: int) -> None:
        """Tell the writer how far the ring is filled. A lost notice is covered by the next one."""
        self._head = head
        self._child.tell(head.to_bytes(8, sys.byteorder))

    def close(self) -> None:
        """Let the writer write all that is in the ring and end. Idempotent."""
        self._child.close()
