"""The monitor: looks at the parts a few times a second and records what changed as events.

Events are published at the end of a look, when counts are at rest: published where they arise, often within a
`send`, they would cause events for ever.
"""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from appliance.downs import Downs, Outage
from appliance.health.concerns import RECENT_S, RecentCounts, of_drops, of_links, of_loops, of_rejects
from appliance.status.conditions import controller
from appliance.status.health import Concern
from appliance.status.labels import Labels
from appliance.status.rates import Rates, RowKey
from appliance.status.rows import LinkRow
from bus.events import Event
from bus.hub import Hub, LinkView
from bus.ledger import Account, Stats
from bus.reasons import AMISS, troubles
from bus.steps import Steps, finish, portions
from bus.vacancy import NO_DEVICE
from bus.watch.watched import WatchedHub

log = logging.getLogger("buscoupler.events")

K = TypeVar("K")
T = TypeVar("T")

SCAN_S = 0.25
KEPT = 256  # events, for whoever asks later
_DROPS_S = 5.0  # between two events about one pipe's drops
_FULL = "queue full"
_PUBLISHED = 20  # events on the buses after one scan; the log has all


class Watched(Protocol):
    """The process that a monitor watches.

    Each change of state of `watched_links` is an event; of the other `rows`, only an outage of a while.
    """

    def rows(self) -> Iterable[LinkRow]: ...
    def watched_links(self) -> Iterable[LinkRow]: ...
    def hubs(self) -> Iterable[Hub]: ...
    def say(self, events: list[bytes], before: Callable[[], None]) -> bool:
        """Publish these events and waiting lines of the log. Return whether there was anything.

        `before` is called first if there is.
        """


class Monitor:
    """The monitor of a process: `scan(now)` finds changes, and parts `record(...)` events of their own.

    Each event is kept and logged at once, and published by `watched.say` at the end of a scan. Drops of
    published events make no further events. `down_ms` has the links that were not up at the last scan, and
    `accounts` are those of all links then, by hub and name.
    """

    def __init__(self, gateway: str, watched: Watched, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self.events: deque[Event] = deque(maxlen=KEPT)
        self.rates = Rates()
        self.down_ms: dict[RowKey, int] = {}
        self.accounts: Mapping[str, Mapping[str, Account]] = {}
        self._gateway, self._watched, self._clock_ns = gateway, watched, clock_ns
        self._links: dict[LinkView, tuple[str, str, int]] = {}  # two may have one name
        self._downs = Downs()
        self._loops: dict[str, int] = {}
        self._drops: dict[str, tuple[float, dict[str, int]]] = {}
        self._rejects: dict[str, dict[str, int]] = {}
        self._recent: dict[str, RecentCounts] = {}
        self._rejected: dict[str, RecentCounts] = {}
        self._waiting: list[bytes] = []
        self._labels: Labels | None = None  # of this scan, once they are needed

    def record(
        self, kind: str, source: str, cause: str, level: int = logging.WARNING, **counts: int
    ) -> Event:
        """Record an event that happened now, and log it at `level`. Links log their own troubles."""
        event = Event(self._clock_ns(), kind, f"{self._gateway}/{source}", cause, counts)
        self.events.append(event)
        cause_of = f"{kind}: {event.source}: {cause}"  # the same one, whatever its counts
        log.log(level, "%s", event.line(), extra={"cause": cause_of, "fields": {"event": event.fields()}})
        if len(self._waiting) < _PUBLISHED:
            self._waiting.append(event.frame())
        return event

    def scan(self, now: float) -> None:
        """Find all changes since the last scan, then publish. `now` is in seconds, monotonic."""
        finish(self.steps(now))

    def steps(self, now: float) -> Steps[None]:
        """Scan as `scan` does, with a pause after each step, so that a loop can turn between them.

        What is watched has to stay the same meanwhile, or the scan to be given up.
        """
        rows, hubs = list(self._watched.watched_links()), list(self._watched.hubs())
        _keep(self._links, [row.link for row in rows])
        _keep(self._loops, {hub.name for hub in hubs})
        accounts = dict[str, Mapping[str, Account]]()
        for some in portions(hubs):
            accounts |= {hub.name: hub.accounts() for hub in some}
            yield
        self.accounts, self._labels = accounts, None
        back = set[LinkView]()
        yield from self._scan_outages(accounts, back, now)
        for few in portions(rows):
            for row in few:
                self._scan_link(row, row.link in back)
            yield
        for hub in hubs:
            self._scan_loops(hub)
        self.rates.sample(accounts, now)
        yield
        self._scan_counts(_stats(accounts), now)
        self._say(hubs)

    def _say(self, hubs: list[Hub]) -> None:
        """Publish waiting events, and take their own drops as known: else each would cause another event."""
        waiting, self._waiting = self._waiting, []
        before = dict[str, dict[str, int]]()
        if not self._watched.say(waiting, lambda: before.update(_dropped(hubs))):
            return
        for name, dropped in _dropped(hubs).items():
            own = Counter(dropped) - Counter(before.get(name, {}))
            if own:
                last_s, seen = self._drops.get(name, (float("-inf"), {}))
                self._drops[name] = last_s, Counter(seen) + own
                self._downs.excuse(name, own)

    def _scan_outages(
        self, accounts: Mapping[str, Mapping[str, Account]], back: set[LinkView], now: float
    ) -> Iterator[None]:
        """Record outages that last, and their ends. Add the links of which it is told that they are up."""
        rows = list({row.link: row for row in self._watched.rows()}.values())
        self._downs.keep(rows)
        for few in portions(rows):
            for row in few:
                if self._downs.concerns(row.link):
                    self._scan_outage(row, accounts, back, now)
            yield
        self.down_ms = self._downs.ages_ms(now)

    def _scan_outage(
        self, row: LinkRow, accounts: Mapping[str, Mapping[str, Account]], back: set[LinkView], now: float
    ) -> None:
        account = accounts.get(row.hub.name, {}).get(row.name)
        outage = self._downs.look(row, account.stats.dropped if account else {}, now)
        if outage is not None:
            self._record_outage(row, outage)
            back |= {row.link} if outage.ended else set()

    def _record_outage(self, row: LinkRow, outage: Outage) -> None:
        counts = {"losses": row.link.losses, **_words(outage.missed)}
        if outage.ended:
            self.record("link", row.source, f"up after {outage.seconds:.0f} s", logging.INFO, **counts)
            return
        fault = row.fault or "nothing answers"
        self.record("link", row.source, f"not up for {outage.seconds:.0f} s: {fault}", **counts)

    def _scan_link(self, row: LinkRow, told: bool) -> None:
        link = row.link
        now = controller(link.condition), link.state, link.losses  # counters change with each error
        before = self._links.get(link)
        self._links[link] = now
        if now == before or told or (before is None and link.state == "opening"):
            return
        fault = link.fault if link.state != "up" else ""
        words = [word for word in (link.state, link.condition, fault) if word not in ("", "unknown")]
        cause = ": ".join(words)
        self.record("link", row.source, cause, logging.INFO, losses=link.losses)

    def _scan_loops(self, hub: Hub) -> None:
        if not isinstance(hub, WatchedHub) or hub.loops == self._loops.get(hub.name, 0):
            return
        self._loops[hub.name] = hub.loops
        cut = ", ".join(f"{cut.pipe.name} for {cut.hold_down_s:g} s" for cut in hub.cuts) or "nothing now"
        self.record("loop", hub.name, f"what was sent came back; cut: {cut}", loops=hub.loops)

    def _scan_counts(self, stats: Mapping[str, Stats], now: float) -> None:
        _keep(self._drops, stats)  # a part that comes back counts from 0
        _keep(self._rejects, stats)
        for name, one in stats.items():
            self._scan_drops(name, one.dropped, now)
        for name, one in stats.items():
            self._scan_rejects(name, one.rejected, now)

    def _scan_drops(self, name: str, counts: dict[str, int], now: float) -> None:
        """Record unintended drops. Drops by policies, takeovers and leaving peers are only counted."""
        if not counts:
            return
        dropped = troubles(counts)
        dropped.pop("loop", None)  # the event about the loop says so, and that the pipe is cut
        dropped.pop(NO_DEVICE, None)  # as the event about the link does
        last_s, seen = self._drops.get(name, (float("-inf"), {}))
        new = Counter(dropped) - Counter(seen)
        if new and now - last_s >= _DROPS_S:
            self._drops[name] = now, dropped
            source = self._source(name)
            self.record("drop", source, "messages were dropped", **_words(new))
            self._recent[source] = RecentCounts(now, dict(new), self._slowest(name) if _FULL in new else "")

    def _source(self, name: str) -> str:
        """Return how events name an account, whose name stands behind that of its hub."""
        hub = next((hub for hub in self.accounts if name.startswith(f"{hub}/")), "")
        if self._labels is None:
            self._labels = Labels(self._watched.rows())
        return self._labels.source(hub, name.removeprefix(f"{hub}/"))

    def _slowest(self, name: str) -> str:
        """Return the peer that dialled and whose queue was full most often; "" if none has dialled."""
        pipes = (pipe for hub in self._watched.hubs() for pipe in hub.pipes
                 if " from " in pipe.name and f"{hub.name}/{pipe.link}" == name)  # fmt: skip
        worst = max(pipes, key=lambda pipe: pipe.stats.dropped.get(_FULL, 0), default=None)
        return "" if worst is None else worst.name

    def _scan_rejects(self, name: str, counts: Mapping[str, int], now: float) -> None:
        """Note new rejects by which somebody should look; a link that began anew counts from 0 again."""
        if not counts:
            return
        amiss = {word: count for word, count in counts.items() if word in AMISS}
        new = Counter(amiss) - Counter(self._rejects.get(name, {}))
        self._rejects[name] = amiss
        if new:
            self._rejected[self._source(name)] = RecentCounts(now, dict(new))

    def concerns(self, now: float) -> Iterator[Concern]:
        """Yield what is wrong with links and buses at the last scan, or was within the last minute."""
        yield from of_links(self._watched.rows(), self._downs.lasting(now))
        yield from of_loops(self._watched.hubs())
        self._recent, self._rejected = _since(self._recent, now), _since(self._rejected, now)
        yield from of_drops(self._recent, now)
        yield from of_rejects(self._rejected, now)


def _words(counts: Mapping[str, int]) -> dict[str, int]:
    return {reason.replace(" ", "_"): count for reason, count in counts.items()}


def _stats(accounts: Mapping[str, Mapping[str, Account]]) -> dict[str, Stats]:
    """Return the counts of the links that have dropped or rejected anything, by the names of hub and link."""
    rows = ((hub, link, account.stats) for hub, links in accounts.items() for link, account in links.items())
    return {f"{hub}/{link}": stats for hub, link, stats in rows if stats.dropped or stats.rejected}


def _dropped(hubs: Iterable[Hub]) -> dict[str, dict[str, int]]:
    """Return what all links have dropped so far, by the names of hub and link."""
    return {name: one.dropped for name, one in _stats({hub.name: hub.accounts() for hub in hubs}).items()}


def _since(told: Mapping[str, RecentCounts], now: float) -> dict[str, RecentCounts]:
    """Return what was noted within the last minute."""
    return {name: one for name, one in told.items() if now - one.at_s < RECENT_S}


def _keep(known: dict[K, T], here: Iterable[K]) -> None:
    """Forget entries that are not `here`: a reload can replace a part by another of the same name."""
    for gone in known.keys() - set(here):
        del known[gone]
