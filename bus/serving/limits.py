"""The bounds of a listening service, and of each of its connections. Pure."""

from dataclasses import astuple, dataclass
from typing import Final

READ_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds, sizes in bytes, all above 0. A service with more of them derives its own record."""

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
