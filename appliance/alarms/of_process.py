"""The alarms of a process, whose watch is made when its topology first has some: most have none."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from appliance.status.health import Concern
from appliance.status.rows import LinkRow
from topologies.resolved.alarms import ResolvedAlarms

if TYPE_CHECKING:
    from appliance.alarms.watch import AlarmWatch


class AlarmsOfProcess:
    """The `AlarmWatch` that `make()` makes, or none so far. Its methods are described there."""

    def __init__(self, make: "Callable[[], AlarmWatch]") -> None:
        self._make = make
        self._watch: AlarmWatch | None = None
        self._is_loaded = False

    def load(self) -> None:
        """Make the watch, and read the states from before a restart, once. This may block."""
        if not self._is_loaded:
            self._made().load()
            self._is_loaded = True

    def _made(self) -> "AlarmWatch":
        if self._watch is None:
            self._watch = self._make()
        return self._watch

    def follow(self, resolved: ResolvedAlarms, *rest: Any) -> None:
        if self._watch is not None or resolved.alarms or resolved.outlets:
            self._made().follow(resolved, *rest)

    def look(self, now_s: float, rows: Callable[[], Iterable[LinkRow]], *rest: Mapping[Any, Any]) -> None:
        if self._watch is not None:
            self._watch.look(now_s, rows, *rest)

    def acknowledge(self, name: str, of: str, by: str) -> list[str]:
        if self._watch is None:
            raise KeyError(name)
        return self._watch.acknowledge(name, of, by)

    def concerns(self) -> Iterable[Concern]:
        return () if self._watch is None else self._watch.concerns()

    def records(self) -> list[dict[str, Any]]:
        return [] if self._watch is None else self._watch.records()

    @property
    def rows(self) -> Sequence[LinkRow]:
        return () if self._watch is None else self._watch.rows

    @property
    def hubs(self) -> Collection[Any]:
        return () if self._watch is None else self._watch.hubs

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
