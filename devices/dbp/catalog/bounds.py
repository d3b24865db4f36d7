"""The bounds of a catalog: of a message, of a service, of all that services register. Pure."""

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """Sizes in bytes, times in seconds, all above 0.

    A reply with all services takes at most `all_entry_bytes`, and 6 + 3 * `text_bytes` for each name.
    """

    frames: int = 64  # of one message, the empty one included; this limits the names of a request too
    message_bytes: int = 1 << 14  # of all frames of a message together
    text_bytes: int = 200  # of a name, or of another text that fills a frame
    depth: int = 16  # JSON containers within each other
    items: int = 1024  # of all JSON containers of a message together, including the containers

    services: int = 4096
    services_per_host: int = 2048
    entry_bytes: int = 1 << 13  # of one service, as the JSON that clients get
    all_entry_bytes: int = 1 << 22

    interval_s: float = 1.0  # between pings to a service that announces no heartbeats
    interval_min_s: float = 0.25  # of heartbeats: a service's offer is clamped to these two
    interval_max_s: float = 60.0

    silenced: int = 1024  # peers that get no answer; beyond, the one quiet longest is forgotten
    silence_s: float = 60.0  # a silenced peer that is quiet for so long is forgotten

    @property
    def file_bytes(self) -> int:
        """The most that the records of all services take."""
        return self.all_entry_bytes + self.services * (200 + 6 * self.text_bytes)

    def __post_init__(self) -> None:
        if min(astuple(self)) <= 0:
            raise ValueError("every bound must be above 0")
        if self.interval_min_s > self.interval_max_s:
            raise ValueError("interval_min_s must not be above interval_max_s")
