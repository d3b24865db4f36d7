"""The bounds of a ZeroMQ socket. Pure."""

from dataclasses import astuple, dataclass

from bus.serving.limits import READ_BYTES


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds, all above 0."""

    # Of all frames of a message together; a peer that sends more is disconnected.
    message_bytes: int = 1 << 16
    frames: int = 256  # of a message; a peer that sends more is disconnected
    queue_bytes: int = 4 << 20  # queued for one peer; of a `dealer` also before its first peer
    connections: int = 8192  # accepted at a time
    topics: int = 1024  # of one subscriber
    topic_bytes: int = 1 << 20  # of all topics of all subscribers together
    handshake_s: float = 5.0  # a connection that has not greeted by then is closed
    stalled_s: float = 30.0  # a peer that reads or acknowledges nothing for this time is disconnected
    retry_min_s: float = 0.1  # the first pause before connecting again; the last is `retry_max_s`
    retry_max_s: float = 2.0
    read_bytes: int = READ_BYTES // 4  # read from one peer at once

    def __post_init__(self) -> None:
        if min(astuple(self)) <= 0 or self.read_bytes > READ_BYTES:
            raise ValueError(f"every limit must be above 0, and read_bytes at most {READ_BYTES}")
