"""The limits of a TMQ client or broker, and counting what was refused."""

import logging
import time
from dataclasses import astuple, dataclass

log = logging.getLogger("buscoupler.tmq")


@dataclass(frozen=True, slots=True)
class Options:
    """Times in seconds, sizes in bytes, each bound per client or broker unless it says otherwise."""

    connect_s: float = 2.0
    verdict_s: float = 0.25  # a peer that has not greeted or closed by then takes one packet a connection
    heartbeat_s: float = 1.0  # a peer silent for three of these is given up
    idle_s: float = 10.0  # a connection that has not greeted and brings no whole frame for so long is closed
    queue_bytes: int = 1 << 20  # waiting for one peer
    connections: int = 1024  # accepted at a time
    dials: int = 256  # begun at a time
    retry_min_s: float = 0.1
    retry_max_s: float = 10.0
    refresh_s: float = 30.0  # a client says its registrations again
    return_s: float = 5.0  # a client looks whether a broker earlier in its list is back
    share_s: float = 10.0  # a broker says its registrations to its peers again; they hold for three of these

    def __post_init__(self) -> None:
        if min(astuple(self)) <= 0:
            raise ValueError("every limit must be above 0")
        if self.retry_min_s > self.retry_max_s:
            raise ValueError("retry_min_s must be at most retry_max_s")

    @property
    def silence_ms(self) -> int:
        return min(int(3000 * self.heartbeat_s), 0xFFFF)


class Rejections:
    """Counts refused input by reason; logs each reason at most once a minute for each host."""

    _AGAIN_S = 60.0
    _REMEMBERED = 256

    def __init__(self, name: str, counts: dict[str, int]) -> None:
        self.name, self.counts = name, counts
        self._logged: dict[tuple[str, str], float] = {}

    def __call__(self, reason: str, host: str = "", count: int = 1) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + count
        now_s = time.monotonic()
        if now_s - self._logged.get((reason, host), -self._AGAIN_S) < self._AGAIN_S:
            return
        if len(self._logged) >= self._REMEMBERED:
            oldest = min(self._logged.values())
            if now_s - oldest < self._AGAIN_S:  # so many kinds within a minute: counted, not logged
                return
            self._logged = {k: at for k, at in self._logged.items() if now_s - at < self._AGAIN_S}
        self._logged[reason, host] = now_s
        log.warning("%s: refused from %s: %s", self.name, host or "a peer", reason)
