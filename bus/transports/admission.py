"""Admission: which of the peers that connect to an address may stay, so that no host shuts out the others.

A host may have half of the connections that the process has room for. Some descriptors stay spare, for files,
devices and connections of our own.
"""

import resource
from collections import Counter

SPARE = 32
"""The descriptors that peers cannot take; or a quarter of all, where that is less."""


def room() -> int:
    """Return how many descriptors of this process peers may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft - min(SPARE, soft // 4)


class PeerAdmission:
    """The connections at one address, counted by host."""

    def __init__(self) -> None:
        self._hosts = Counter[str]()

    def refusal(self, host: str, descriptor: int, most: int) -> str:
        """Return why a connection of `host` must go, "" if it may stay; `most` peers may stay.

        `descriptor` is the number of the new descriptor: the system gives the lowest that is free. `host` is
        "" for a local socket.
        """
        limit = room()
        if self._hosts.total() >= most:
            return f"{self._hosts.total()} are connected"
        if descriptor >= limit:
            return f"the process has no more than {limit} descriptors for peers"
        if host and self._hosts[host] >= max(1, min(most, limit) // 2):
            return f"{host} has {self._hosts[host]} connections, half of all that there may be"
        return ""

    def take(self, host: str) -> None:
        """Count a connection of `host`."""
        self._hosts[host] += 1

    def leave(self, host: str) -> None:
        """Count a connection of `host` less."""
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]
