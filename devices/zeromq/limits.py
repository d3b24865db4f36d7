"""The bounds of a ZeroMQ socket. Pure."""

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """All above 0. A peer's queues take `queue` whole messages each way, so at most `queue * message_bytes`.

    libzmq bounds a frame by `message_bytes`, not a message: one of many frames grows in its memory until the
    last frame is there.
    """

    message_bytes: int = 1 << 16  # of one frame; a peer that sends a larger one is disconnected
    queue: int = 1000  # whole messages that wait for one peer, and as many that wait to be read from it
    read: int = 256  # messages taken in one turn of the loop
    handshake_s: float = 5.0  # a connection that has not greeted by then is closed

    def __post_init__(self) -> None:
        if min(astuple(self)) <= 0:
            raise ValueError("every limit must be above 0")
