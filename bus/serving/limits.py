"""The bounds of a listening service, and of each of its connections. Pure."""

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds, sizes in bytes, all above 0. A service with more of them derives its own record."""

    heartbeat_s: float = 1.0  # how often silence is judged, and a sign of life is said
    idle_s: float = 10.0  # a connection that has not greeted and brings no whole object for so long is closed
    stalled_s: float = 30.0  # a peer that takes nothing, or acknowledges nothing, for so long is closed
    queue_bytes: int = 1 << 20  # waiting for one peer; more is dropped and counted
    object_bytes: int = 1 << 16  # of an object that has begun; a format with a closer bound has its own
    connections: int = 1024  # accepted at a time

    def __post_init__(self) -> None:
        if min(astuple(self)) <= 0:
            raise ValueError("every limit must be above 0")
