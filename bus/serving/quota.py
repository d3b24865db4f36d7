"""Bounds what clients register: in all, under one key, and from one host. Pure."""

from collections import Counter
from typing import Generic, TypeVar

K = TypeVar("K")


class Quota(Generic[K]):
    """At most `total` in all, `per_key` under one key, `per_host` from one host, and `weight` all together.

    A key is what a client registers under, such as its address or its connection. The host "" has no bound of
    its own. A weight says how much memory one takes. The reasons of refusals are "`what` full", "`what` of
    one `key`" and "`what` of one host".
    """

    def __init__(
        self,
        total: int,
        per_key: int,
        per_host: int,
        weight: int,
        what: str = "registrations",
        key: str = "connection",
    ) -> None:
        self.total, self.per_key, self.per_host, self.weight = total, per_key, per_host, weight
        self._full = f"{what} full"
        self._of_key, self._of_host = f"{what} of one {key}", f"{what} of one host"
        self._count = self._weight = 0
        self._keys, self._hosts = Counter[K](), Counter[str]()

    def __len__(self) -> int:
        return self._count

    def take(self, key: K, host: str, weight: int = 0) -> str:
        """Take one. Returns "", or the bound that refuses it; then nothing is taken."""
        if self._count >= self.total or self._weight + weight > self.weight:
            return self._full
        if self._keys[key] >= self.per_key:
            return self._of_key
        if host and self._hosts[host] >= self.per_host:
            return self._of_host
        self._count += 1
        self._weight += weight
        self._keys[key] += 1
        self.move("", host)
        return ""

    def grow(self, weight: int) -> str:
        """Let what is taken weigh so much more, or less. Returns "", or the bound that refuses it."""
        if weight > 0 and self._weight + weight > self.weight:
            return self._full
        self._weight += weight
        return ""

    def hand_over(self, host: str) -> str:
        """Count one that was taken for no host for `host`. Returns "", or the bound that refuses it."""
        if self._hosts[host] >= self.per_host:
            return self._of_host
        self.move("", host)
        return ""

    def give_back(self, key: K, host: str, weight: int = 0) -> None:
        """Give one back that was taken, with the host and weight that it has by now."""
        self._count -= 1
        self._weight -= weight
        lower(self._keys, key)
        self.move(host, "")

    def move(self, host: str, to: str) -> None:
        """Count one that is taken for another host, which said it again. No bound refuses it."""
        if host == to:
            return
        if host:
            lower(self._hosts, host)
        if to:
            self._hosts[to] += 1


def lower(counts: Counter[K], key: K) -> None:
    """Count one less; keep no zero."""
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
