"""The settings of a broker that leases bridges. Topology files and the command `broker` read this record."""

from dataclasses import dataclass
from typing import Annotated

from bus.key_types import Milliseconds
from bus.leases.wire import HEARTBEATS, LEASE_MAX_MS, LEASE_MS, LEASE_MS_MAX, LEASE_REAL_TIME_MS
from bus.schema import Range, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings(Record):
    """The settings of a broker: times, and how it treats clients."""

    heartbeat_ms: Annotated[Milliseconds, "a peer that is silent for three of these counts as gone"] = 1000
    lease_ms: Annotated[
        Annotated[int, Range(1, LEASE_MS_MAX)] | None,
        f"how long a bridge may forward on one lease; it renews a lease {HEARTBEATS:g} times in this time; "
        f"by default {LEASE_MS}, and {LEASE_REAL_TIME_MS} for a gateway with real-time priority",
    ] = None
    lease_max_ms: Annotated[
        int,
        Range(1, LEASE_MS_MAX),
        "the longest lease of a gateway whose machine is late; if not above `lease_ms`, leases never grow",
    ] = LEASE_MAX_MS
    exact: Annotated[
        bool,
        "give clients of 2015 only messages whose pattern is exactly the one that they subscribed to; "
        "a longer one makes some of them fail",
    ] = False
    foreign_hosts: Annotated[
        bool, "clients may register addresses of other hosts than their own, which the broker then dials"
    ] = False
    connections: Annotated[
        Annotated[int, Range(1, 1_000_000)] | None,
        "most connections at a time; by default as many as descriptors and memory allow",
    ] = None
    unconnected: Annotated[
        int,
        Range(0, 65536),
        "clients of one host that may register without a connection of their own, as those of 2015 do",
    ] = 64

    @property
    def most_ms(self) -> int:
        """The bound of all leases, in ms."""
        return max(self.lease_ms or LEASE_MS, self.lease_max_ms)
