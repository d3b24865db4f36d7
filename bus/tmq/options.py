"""The limits of a TMQ client or broker. Pure."""

from dataclasses import dataclass

from bus.serving.limits import Limits


@dataclass(frozen=True, slots=True)
class Options(Limits):
    """The limits of a TMQ client or broker: times in seconds, sizes in bytes.

    Each bound is per client or broker unless it says otherwise. A peer that is silent for three heartbeats is
    given up.
    """

    connect_s: float = 2.0
    doubt_s: float = 3.0  # after a client took no connection within `connect_s`, until it is tried once more
    verdict_s: float = 0.25  # a peer that has not greeted or closed by then takes one packet a connection
    dials: int = 256  # begun at a time
    retry_min_s: float = 0.1
    retry_max_s: float = 10.0
    refresh_s: float = 30.0  # a client says its registrations again
    return_s: float = 5.0  # a client looks whether a broker earlier in its list is back
    share_s: float = 10.0  # a broker says its registrations to its peers again; they hold for three of these

    def __post_init__(self) -> None:
        Limits.__post_init__(self)
        if self.retry_min_s > self.retry_max_s:
            raise ValueError("retry_min_s must be at most retry_max_s")

    @property
    def silence_ms(self) -> int:
        return min(int(3000 * self.heartbeat_s), 0xFFFF)
