"""Refusals: counted all, and logged no more often than somebody can read."""

import time
from collections.abc import Callable
from logging import Logger


class Rejections:
    """The refused input of one service, counted by reason; each reason is logged once a minute for each host.

    `counts` is as a rule the `rejected` of a ledger; `name` says in the log who refuses, or is `refused by`
    others, if `verb` says so. Reasons must be a bounded set: no text from the wire is part of one.
    """

    _AGAIN_S = 60.0
    _REMEMBERED = 256

    def __init__(
        self,
        name: str,
        counts: dict[str, int],
        log: Logger,
        clock: Callable[[], float] = time.monotonic,
        verb: str = "refused from",
    ) -> None:
        self.name, self.counts, self._verb = name, counts, verb
        self._log, self._clock = log, clock
        self._logged: dict[tuple[str, str], float] = {}

    def __call__(self, reason: str, host: str = "", count: int = 1, detail: str = "") -> None:
        """Count a refusal. `detail` stands in the log only, so it may quote the wire, if it is printable."""
        self.counts[reason] = self.counts.get(reason, 0) + count
        now_s = self._clock()
        if now_s - self._logged.get((reason, host), -self._AGAIN_S) < self._AGAIN_S:
            return
        if len(self._logged) >= self._REMEMBERED:
            oldest = min(self._logged.values())
            if now_s - oldest < self._AGAIN_S:  # so many kinds within a minute: counted, not logged
                return
            self._logged = {k: at for k, at in self._logged.items() if now_s - at < self._AGAIN_S}
        self._logged[reason, host] = now_s
        why = f"{reason}: {detail}" if detail else reason
        self._log.warning("%s: %s %s: %s", self.name, self._verb, host or "a peer", why)
