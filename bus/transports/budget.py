"""The budget of a process: the memory that may wait in all its stream queues together.

The memory that peers make a process hold is charged here: messages that wait for a slow peer, and messages
that have not come whole. Over the budget, the holder of most memory lets go first.
"""

import os
from typing import Protocol

from bus.machine.quotas import memory_allowed_bytes

REASON = "memory"
"""The reason of drops that a budget forces."""
_SHARE = 4


class Holder(Protocol):
    """A holder of memory for a peer."""

    @property
    def held_bytes(self) -> int:
        """The bytes of memory that the holder has charged."""

    def relieve(self) -> None:
        """Drop as much as possible, counted by `REASON`."""


class Budget:
    """The sum of memory that holders may charge: at most `limit_bytes`; `held_bytes` are charged now."""

    __slots__ = ("_holders", "held_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes, self.held_bytes = limit_bytes, 0
        self._holders: set[Holder] = set()

    def revise(self, limit_bytes: int) -> None:
        """Set another limit from now on."""
        self.limit_bytes = limit_bytes
        self._keep_within()

    def charge(self, holder: Holder, change: int) -> None:
        """Note that a holder holds `change` bytes more, or fewer. Over the limit, relieve the fullest."""
        self.held_bytes += change
        if change > 0:
            self._holders.add(holder)
            if self.held_bytes > self.limit_bytes:
                self._keep_within()
        elif not holder.held_bytes:
            self._holders.discard(holder)

    def _keep_within(self) -> None:
        """Relieve the fullest until an eighth of the limit is free, so that the next time is not at once."""
        enough = self.limit_bytes - self.limit_bytes // 8
        for holder in sorted(self._holders, key=lambda holder: holder.held_bytes, reverse=True):
            if self.held_bytes <= enough:
                break
            holder.relieve()


def memory_of_machine() -> int:
    """Return the memory that this process may have: that of the machine, or of its control groups if less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(min(total, memory_allowed_bytes()))


def default_bytes() -> int:
    """Return the default limit of a process: a quarter of the memory."""
    return memory_of_machine() // _SHARE


PROCESS = Budget(default_bytes())
"""The budget of this process, which has one memory; `memory_bytes` of its gateway revises it."""
