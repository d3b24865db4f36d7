"""The watch on a gateway's health: it keeps the last verdict, and tells of each change."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from appliance.process import notify
from appliance.status.health import Concern, Health, verdict

LOOK_S: Final = 1.0
_LEVELS = {"ok": logging.INFO, "degraded": logging.WARNING, "trouble": logging.WARNING}


class HealthWatch:
    """A watch on the health of a gateway: `now` is the last verdict. `record` is `Monitor.record`.

    A concern counts from its second look on: within one, a takeover or a reload goes by.
    """

    def __init__(self, record: Callable[..., Any]) -> None:
        self.now = Health()
        self._record = record
        self._told, self._due_s = "", float("-inf")
        self._seen = frozenset[str]()

    def look(self, now_s: float, find: Callable[[], Iterable[Concern]]) -> None:
        """Once in `LOOK_S`, judge what `find` finds wrong. Another word is an event.

        The service manager has the line. `now_s` is monotonic.
        """
        if now_s >= self._due_s:
            self._due_s = now_s + LOOK_S
            found = list(find())
            self._be(verdict(one for one in found if one.source in self._seen))
            self._seen = frozenset(one.source for one in found)

    def _be(self, health: Health) -> None:
        before, self.now = self.now, health
        line = health.line()
        if self.now.word != before.word:
            self._record("health", "gateway", line, _LEVELS[self.now.word])
        if line != self._told:
            self._told = line
            notify.tell(f"STATUS={line}")
