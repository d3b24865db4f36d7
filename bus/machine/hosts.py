"""Hosts take turns: the order in which connections are read when many of them wait. Pure.

Who opens a thousand connections, and says a little on each, would have others wait for a thousand reads.
"""

from collections.abc import Hashable
from typing import Final

HOSTS: Final[dict[int, Hashable]] = {}
"""The host that the connection with a descriptor counts for; one that is not here counts for itself."""


class Turns:
    """Descriptors that wait, by host. A host that has just had its turn is the last of those that wait."""

    def __init__(self) -> None:
        self.waiting: dict[Hashable, dict[int, None]] = {}

    def put(self, number: int) -> None:
        """Have a descriptor wait behind the others of its host. One that waits already keeps its place."""
        self.waiting.setdefault(HOSTS.get(number, number), {}).setdefault(number)

    def take(self) -> int:
        """Take the next descriptor. Raises `StopIteration` if none waits."""
        host = next(iter(self.waiting))
        numbers = self.waiting.pop(host)
        number = next(iter(numbers))
        del numbers[number]
        if numbers:
            self.waiting[host] = numbers
        return number
