"""The watch on the alarms of a process: it hears frames and gateways, looks at links, and tells people."""

import logging
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from appliance.alarms.announcement import (
    KEY_TOKENS_MAX,
    PATTERN,
    AlarmSaid,
    announced,
    heard,
    presence,
)
from appliance.alarms.book import SUBJECTS, Book, Deed
from appliance.alarms.ears import Ears
from appliance.alarms.keeping import Keeper, packed, unpacked
from appliance.alarms.links import Accounts, LinkValues, by_part, meant
from appliance.alarms.notice import Notice, at_stage, notice_of
from appliance.alarms.states import State
from appliance.alarms.telling import MakeOutlet, Teller
from appliance.parts.bus import BusPart
from appliance.status.conditions import carries
from appliance.status.health import Concern
from appliance.status.rates import Rate, RowKey
from appliance.status.rows import LinkRow
from bus.announcements import Clocks, unproven
from bus.errors import BusError
from bus.keys import Keyring
from bus.names import Names
from bus.quantity.known import Quantities
from bus.quantity.quantity import Quantity
from bus.quantity.telling import told
from bus.wire.frame import unpack
from bus.wire.pattern import Pattern, token
from topologies.model.alarms import AlarmSpec
from topologies.resolved.alarms import ResolvedAlarm, ResolvedAlarms

log = logging.getLogger("buscoupler")

PRESENCE_S: Final = 2.0
HOLD_S: Final = 6.0
"""A gateway that was not heard for so long leads no more."""
SETTLE_S: Final = 4.0
"""The time after its start for which a gateway only listens, where others judge too."""
AT_ONCE: Final = 64
"""The most announcements of one look on one bus."""
_SAVE_S: Final = 1.0
_NUMBER_BYTES_MAX: Final = 64
_UNKNOWN: Final = Quantity(())  # what no protocol describes is read as text
_LATE_NS: Final = 3_600 * 10**9  # of an older end, nobody is told
_LEVELS = {"warning": logging.WARNING, "critical": logging.ERROR}
NOTHING: Final = ResolvedAlarms("", (), ())


class AlarmWatch:
    """The alarms of a process. `record` makes an event, as `Monitor.record` does.

    `keeper` has their states over a restart, and `make` makes outlets.
    """

    def __init__(
        self,
        gateway: str,
        record: Callable[..., Any],
        keeper: Keeper,
        make: MakeOutlet,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._gateway, self._record, self._keeper, self._clock_ns = gateway, record, keeper, clock_ns
        self._resolved, self._names, self._quantities = NOTHING, Names(), Quantities()
        self._teller = Teller(make, self._through)
        self._books: dict[str, Book] = {}
        self._by_token: dict[int, Book] = {}
        self._ears: dict[str, Ears] = {}
        self._values = LinkValues()
        self._start_s: float | None = None
        self._now_s = self._said_s = self._saved_s = float("-inf")
        self._heard_s: dict[str, float] = {}
        self._clocks = Clocks(forgets=False)
        self._ring: Keyring | None = None
        self._dirty = self._is_anew = False
        self._loaded: Mapping[str, list[dict[str, Any]]] = {}

    def load(self) -> None:
        """Read the states from before a restart. This may block: it is no work for an event loop."""
        try:
            self._loaded = unpacked(self._keeper.load())
        except ValueError as error:
            log.warning("%s", error)

    def follow(
        self,
        resolved: ResolvedAlarms,
        names: Names,
        quantities: Quantities,
        parts: Mapping[str, object],
        loop: AbstractEventLoop,
        ring: Keyring | None = None,
    ) -> None:
        """Watch these alarms from now on, on the buses among `parts`. States of alarms that stay go on.

        With a `ring`, announcements are signed, and others are rejected.
        """
        self._ring = None if ring is None else ring.derive(b"alarms", resolved.system.encode())
        self._names, self._quantities, self._loop = names, quantities, loop
        self._now_s = loop.time()
        kept: Mapping[str, list[dict[str, Any]]] = {name: one.kept() for name, one in self._books.items()}
        if self._start_s is None and resolved.alarms:
            self._start_s, kept = self._now_s, self._loaded
        ended = self._end({one.name for one in resolved.alarms})
        buses = {part.name: part for part in parts.values() if isinstance(part, BusPart)}
        mine = [one for one in resolved.alarms if one.spec.link or any(bus in buses for bus in one.buses)]
        self._books = {one.name: self._book(one, kept) for one in mine}
        self._by_token = {token(name): book for name, book in self._books.items()}
        self._resolved, self._is_anew = resolved, True
        self._listen({bus: buses[bus] for one in mine for bus in one.buses if bus in buses})
        try:
            self._teller.follow(resolved.outlets, loop)
        except BusError as error:
            log.warning("no outlets of alarms: %s", error)
        for deed in ended:
            for outlet in deed.alarm.spec.notify:
                self._teller.tell(outlet, self._notice(deed.alarm.name, deed.alarm.spec, deed.state))

    def _end(self, names: Collection[str]) -> list[Deed]:
        """End the alarms that are not among these. Return the changes: what is raised is cleared."""
        deeds = list[Deed]()
        for book in [book for name, book in self._books.items() if name not in names]:
            deeds += book.end(self._leads(book), self._now_s, self._clock_ns())
        for deed in deeds:
            self._did(deed)
        return deeds

    def _book(self, alarm: ResolvedAlarm, kept: Mapping[str, list[dict[str, Any]]]) -> Book:
        old = self._books.get(alarm.name)
        if old is not None and old.alarm == alarm:
            old.rename(self._names.show)
            return old
        since_s = None if old is None else old.since_s
        book = Book(alarm, self._gateway, self._names.show, self._now_s, since_s)
        book.restore(kept.get(alarm.name, ()))
        return book

    def _listen(self, buses: Mapping[str, BusPart]) -> None:
        for bus in self._ears.keys() - buses.keys():
            self._ears.pop(bus).close()
        for bus, part in buses.items():
            ears = self._ears.setdefault(bus, Ears(bus, partial(self._hear, bus)))
            patterns = [book.alarm.tokens for book in self._judged(bus)]
            ears.follow(part.plain, [PATTERN, *patterns])

    def _judged(self, bus: str) -> Iterator[Book]:
        """Yield the books of frames on a bus."""
        return (one for one in self._books.values() if one.alarm.judges and bus in one.alarm.buses)

    # ---- what is heard

    def _hear(self, bus: str, message: bytes) -> None:
        _, tokens, data = unpack(message)
        if tokens[: len(PATTERN)] == PATTERN:
            reason = "" if self._ring is None else unproven(message, self._ring)
            said = None if reason else heard(message)
            reason = reason or ("" if said is None else self._merge(said))
            if reason:
                self._ears[bus].reject(reason)
        for book in self._judged(bus) if len(tokens) <= KEY_TOKENS_MAX else ():
            start = book.alarm.tokens
            is_own = tokens[:1] == PATTERN[:1] and not start
            if tokens[: len(start)] == start and not is_own:
                book.hear(tokens, self._number(tokens, data), self._loop.time())

    def _number(self, tokens: tuple[int, ...], data: bytes) -> float | None:
        """Return the value of a frame: as its protocol says, else the number that its data are as text."""
        quantity = self._quantities.find(tokens)
        if quantity is None and len(data) > _NUMBER_BYTES_MAX:
            return None
        return told(quantity or _UNKNOWN, data)[1]

    def _merge(self, said: AlarmSaid) -> str:
        """Take an announcement of another gateway. Return the reason to reject it, "" if there is none."""
        if said.gateway == self._gateway:
            return ""
        if said.state is None:
            return self._meet(said)
        book = self._by_token.get(said.alarm)
        if book is not None:
            self._dirty |= book.merge(said.key, said.state, self._leads(book), self._loop.time())
        return ""

    def _meet(self, said: AlarmSaid) -> str:
        """Note that another gateway is there. With keys its clock must go on, so that nobody plays one that
        has died."""
        if any(said.gateway in book.alarm.judges for book in self._books.values()):
            now_s = self._loop.time()
            if not self._clocks.take(said.gateway, said.time_ns, now_s) and self._ring is not None:
                return "replayed"
            self._heard_s[said.gateway] = now_s
        return ""

    def _leads(self, book: Book) -> bool:
        """Return whether this gateway leads an alarm: none that comes before it was heard lately."""
        judges, now_s = book.alarm.judges, self._loop.time()
        if self._gateway not in judges:
            return not judges
        if len(judges) > 1 and now_s - book.since_s < SETTLE_S:
            return False
        before = judges[: judges.index(self._gateway)]
        return all(now_s - self._heard_s.get(one, book.since_s) >= HOLD_S for one in before)

    # ---- what is done at each look

    def look(
        self,
        now_s: float,
        rows: Callable[[], Iterable[LinkRow]],
        rates: Mapping[RowKey, Rate],
        accounts: Accounts,
    ) -> None:
        """Judge, announce, tell and keep. Call it a few times a second. `now_s` is monotonic."""
        self._now_s = now_s
        if not self._books:
            return
        self._look_at_links(rows, rates, accounts)
        for book in self._books.values():
            for deed in book.look(now_s, self._clock_ns(), self._leads(book)):
                self._did(deed)
        self._tell()
        self._announce()
        if self._is_owing() and not self._keeper.busy and now_s - self._saved_s >= _SAVE_S:
            self._dirty, self._saved_s = False, now_s
            self._keeper.save(self._kept(), self._loop)

    def _is_owing(self) -> bool:
        """Return whether the keeper has not kept all: what failed, such as on a full disk, is tried again."""
        return self._dirty or not self._keeper.settled

    def _look_at_links(
        self, rows: Callable[[], Iterable[LinkRow]], rates: Mapping[RowKey, Rate], accounts: Accounts
    ) -> None:
        books = [book for book in self._books.values() if book.alarm.spec.link is not None]
        if not books:
            return
        self._values.look(rates, accounts, self._now_s)
        parts = by_part(rows())
        for book in books:
            here = set[tuple[int, ...]]()
            for row in meant(book.alarm.spec, parts):
                key = Pattern(self._gateway, row.hub.name, row.name)
                of = f"{self._gateway}/{row.source}"
                value = self._values.of(book.alarm.spec.of, (row.hub.name, row.name))
                is_up = carries(row.link.state, row.link.condition)
                book.link(tuple(key), of, is_up, value, self._now_s)
                here.add(tuple(key))
            if self._is_anew:
                for deed in book.leave(here, self._now_s, self._clock_ns()):
                    self._did(deed)
        self._is_anew = False

    def _did(self, deed: Deed) -> None:
        """Make an event of a change that this gateway made."""
        state, spec = deed.state, deed.alarm.spec
        level = {"raised": _LEVELS[spec.severity], "cleared": logging.INFO}.get(state.stage, logging.WARNING)
        by = f" by {state.by}" if state.stage == "acknowledged" else ""
        why = at_stage(state.stage, _words(spec.text, state.cause))
        words = f"{state.of}: {state.stage}{by}: {why}"
        self._record("alarm", f"alarm {deed.alarm.name}", words, level, number=state.number)
        self._dirty = True

    def _tell(self) -> None:
        now_ns = self._clock_ns()
        for name, book in self._books.items():
            for _, state, outlet in book.untold(self._leads(book)):
                if state.stage == "raised" or now_ns - state.since_ns < _LATE_NS:
                    self._teller.tell(outlet, self._notice(name, book.alarm.spec, state))

    def _notice(self, name: str, spec: AlarmSpec, state: State) -> Notice:
        return notice_of(self._resolved.system, self._gateway, name, spec, state)

    def _through(self, outlet: str, notice: Notice, told: bool) -> None:
        """Note that an outlet told people, or gave up."""
        book = self._books.get(notice.alarm)
        if book is not None:
            book.told(notice.of, notice.number, notice.state, outlet, told)
            self._dirty = True

    def _announce(self) -> None:
        frames = dict[str, list[bytes]]()
        for name, book in self._books.items():
            due = book.due(self._now_s, self._leads(book))
            said = [
                announced(self._gateway, name, key, state, self._ring) for key, state in islice(due, AT_ONCE)
            ]
            for bus in book.alarm.buses:
                frames.setdefault(bus, []).extend(said)
        if self._is_settled() and self._now_s - self._said_s >= PRESENCE_S:
            self._said_s = self._now_s
            for bus in self._ears:
                frames.setdefault(bus, []).append(presence(self._gateway, self._clock_ns(), self._ring))
        for bus, ears in self._ears.items():
            ears.say(frames.get(bus, ()))

    def _is_settled(self) -> bool:
        return self._start_s is not None and self._now_s - self._start_s >= SETTLE_S

    def _kept(self) -> bytes:
        return packed({name: kept for name, book in self._books.items() if (kept := book.kept())})

    # ---- what others ask

    def acknowledge(self, name: str, of: str, by: str) -> list[str]:
        """Acknowledge the raised subjects of an alarm that are called `of`, or all if it is empty.

        Return them in words. Raises KeyError for an alarm that is not watched here.
        """
        deeds = self._books[name].acknowledge(of, by, self._loop.time(), self._clock_ns())
        for deed in deeds:
            self._did(deed)
        return [deed.state.of for deed in deeds]

    def concerns(self) -> Iterator[Concern]:
        """Yield the alarms that are raised, and a fault in keeping them."""
        for name, book in self._books.items():
            spec = book.alarm.spec
            if book.left_out:
                text = f"more than {SUBJECTS} patterns match it: it watches so many, and not the others"
                yield Concern("degraded", f"alarm {name}", text)
            for state in book.states():
                if state.is_on:
                    by = f" (acknowledged by {state.by})" if state.stage == "acknowledged" else ""
                    text = f"{state.of}: {_words(spec.text, state.cause)}{by}"
                    yield Concern(
                        "trouble" if spec.severity == "critical" else "degraded", f"alarm {name}", text
                    )
        if self._books and self._keeper.fault:
            yield Concern("degraded", "alarms", f"a restart would lose them: {self._keeper.fault}")

    def records(self) -> list[dict[str, Any]]:
        """Return the alarms as a status has them; one that was never raised is `normal`."""
        return [row for name, book in self._books.items() for row in self._rows(name, book)]

    def _rows(self, name: str, book: Book) -> Iterator[dict[str, Any]]:
        spec = book.alarm.spec
        about = {
            "alarm": name, "severity": spec.severity, "text": spec.text or "",
            "judges": list(book.alarm.judges or (self._gateway,)), "leads": self._leads(book),
        }  # fmt: skip
        states = book.states()
        for state in states:
            yield about | state.as_record()
        if not states:
            yield about | State(0, "cleared", "", 0, "", "").as_record() | {"stage": "normal"}

    @property
    def rows(self) -> Sequence[LinkRow]:
        """The rows of outlets in a status."""
        return self._teller.rows

    @property
    def hubs(self) -> Collection[Any]:
        """The hub that counts what outlets were given; none without outlets."""
        return (self._teller.hub,) if self._teller.rows else ()

    def close(self) -> None:
        """Leave the buses, end the outlets and keep what changed. Idempotent."""
        for ears in self._ears.values():
            ears.close()
        self._ears.clear()
        self._teller.close()
        if self._is_owing():
            self._dirty = False
            self._keeper.finish(self._kept())


def _words(text: str | None, cause: str) -> str:
    return f"{text} ({cause})" if text and cause else text or cause
