"""The bounds of a listening service: of its connections, its peers' requests, and what clients register.

Pure.
"""

from collections import Counter
from dataclasses import astuple, dataclass
from typing import Final, Generic, TypeVar

K = TypeVar("K")
READ_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a service: times in seconds, sizes in bytes, all above 0.

    Derive a record for further ones.
    """

    heartbeat_s: float = 1.0  # how often silence is judged, and a sign of life is said
    idle_s: float = 5.0  # a connection that has not greeted and brings no whole object for so long is closed
    stalled_s: float = 30.0  # a peer that takes nothing, or acknowledges nothing, for so long is closed
    queue_bytes: int = 1 << 20  # waiting for one peer; more is dropped and counted
    object_bytes: int = 1 << 16  # of an object that has begun; a format with a closer bound has its own
    connections: int = 1024  # accepted at a time
    read_bytes: int = READ_BYTES  # read at once, and so cut into objects at once

    def __post_init__(self) -> None:
        if min(astuple(self)) <= 0 or self.read_bytes > READ_BYTES:
            raise ValueError(f"every limit must be above 0, and read_bytes at most {READ_BYTES}")


class Quota(Generic[K]):
    """Bounds of registrations: `total` in all, `per_key`, `per_host`, and `weight` for all together.

    A key is what a client registers under, such as its address or its connection. The host "" has no bound of
    its own. A weight says how much memory a registration takes; those of one host take `host_weight` at most.
    The reasons of refusals are "`what` full", "`what` of one `key`" and "`what` of one host".
    """

    def __init__(
        self,
        total: int,
        per_key: int,
        per_host: int,
        weight: int,
        what: str = "registrations",
        key: str = "connection",
        host_weight: int | None = None,
    ) -> None:
        self.host_weight = weight if host_weight is None else host_weight
        self.total, self.per_key, self.per_host, self.weight = total, per_key, per_host, weight
        self._full = f"{what} full"
        self._of_key, self._of_host = f"{what} of one {key}", f"{what} of one host"
        self._count = self._weight = 0
        self._keys, self._hosts = Counter[K](), Counter[str]()
        self._weights = Counter[str]()  # of hosts

    def __len__(self) -> int:
        return self._count

    def take(self, key: K, host: str, weight: int = 0) -> str:
        """Count one registration more. Return "", or the bound that refuses it; then nothing is counted."""
        if self._count >= self.total or self._weight + weight > self.weight:
            return self._full
        if self._keys[key] >= self.per_key:
            return self._of_key
        if host and (self._hosts[host] >= self.per_host or self._is_heavy(host, weight)):
            return self._of_host
        self._count += 1
        self._weight += weight
        self._keys[key] += 1
        self.move("", host, weight)
        return ""

    def _is_heavy(self, host: str, weight: int) -> bool:
        return self._weights[host] + weight > self.host_weight

    def grow(self, weight: int, host: str = "") -> str:
        """Change the weight of what a host has registered. Return "", or the bound that refuses it."""
        if weight > 0 and self._weight + weight > self.weight:
            return self._full
        if weight > 0 and host and self._is_heavy(host, weight):
            return self._of_host
        self._weight += weight
        self._weigh(host, weight)
        return ""

    def hand_over(self, host: str, weight: int = 0) -> str:
        """Count a registration of no host for `host` from now on. Return "", or the bound that refuses it."""
        if self._hosts[host] >= self.per_host or self._is_heavy(host, weight):
            return self._of_host
        self.move("", host, weight)
        return ""

    def give_back(self, key: K, host: str, weight: int = 0) -> None:
        """Count one registration less, with the host and weight that it has by now."""
        self._count -= 1
        self._weight -= weight
        lower(self._keys, key)
        self.move(host, "", weight)

    def move(self, host: str, to: str, weight: int = 0) -> None:
        """Count a registration of one host for another, which repeated it. No bound refuses it."""
        if host == to:
            return
        if host:
            lower(self._hosts, host)
        if to:
            self._hosts[to] += 1
        self._weigh(host, -weight)
        self._weigh(to, weight)

    def _weigh(self, host: str, weight: int) -> None:
        if host and weight:
            self._weights[host] += weight
            if not self._weights[host]:
                del self._weights[host]


def lower(counts: Counter[K], key: K) -> None:
    """Lower the count of a key by one; keep no zero."""
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
