"""The recorder: the gateway's side of a tap (docs/capture.md).

The data path only copies what a hub publishes into a ring in shared memory, once. A process of its own
(`devices/tap/writer.py`) decodes and writes. A full ring drops, and counts how much.
"""

import json
import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bus.hub import Hub, Pipe
from bus.wire.batch import Batch
from bus.wire.pattern import Pattern
from capture.schema import Direction, Hubs, Kind
from devices.tap.ledger import Ledger
from devices.tap.names import Told
from devices.tap.process import WriterProcess
from devices.tap.rest import Rest
from devices.tap.ring import RING_BYTES, Place, Ring

log = logging.getLogger("buscoupler.tap")

NOTICE_S = 0.02  # the writer hears of new records this late
LEDGER_S = 1.0
_LOOKS = 4  # at the load of the machine, for each look at the ledgers
_PLACES = 4096
_FRAME, _LEDGER, _GAP, _TOPOLOGY, _EVENT = map(
    int, (Kind.FRAME, Kind.LEDGER, Kind.GAP, Kind.TOPOLOGY, Kind.EVENT)
)
_NOWHERE = Place("", "", "", 0).encode()
_OWED = 4096  # ledger rows kept for later while the ring is full
_EVENTS = 256  # as many events
_REASON_CHARS = 256

Locate = Callable[[Pipe | None], tuple[str, str, Direction]]
"""For a pipe (None: the appliance itself): the segment on whose side it is, its name, which way it brings."""
LocateLink = Callable[[str], tuple[str, str]]
"""For a link in the accounts of a hub: the segment on whose side it is, its name there."""


class Options(NamedTuple):
    """Bounds of a recorder; sizes in bytes, `keep_s` 0 for no limit by age.

    With `idle` it writes only in processor time that nothing else wants. If that is not enough and the data
    path is busy, it rests for some seconds.
    """

    ring_bytes: int = RING_BYTES
    file_bytes: int = 64 << 20
    file_s: float = 60.0
    keep_bytes: int = 1 << 30
    keep_s: float = 0.0
    flush_s: float = 1.0
    pattern: tuple[int | str, ...] = ()
    idle: bool = True


class Recorder:
    """Records what `watch`ed hubs move under `directory`.

    `state` is `closed`, `up` or `waiting` (no disk, no writer; it goes on trying), `fault` the last trouble,
    `losses` how often the writing process was lost. In messages: `captured` into the ring, `lost` where that
    was full. `progress` is the last that the writer reported: rows `written`, `files` finished and `deleted`.
    `names` are written beside the capture.
    """

    def __init__(
        self,
        name: str,
        gateway: str,
        directory: Path,
        options: Options | None = None,
        names: Iterable[str] = (),
    ) -> None:
        self.name, self.gateway, self.directory = name, gateway, directory
        self.options = options = options or Options()
        self.state: Literal["closed", "up", "waiting"] = "closed"
        self.fault = ""
        self.losses = 0
        self.captured = self.lost = 0
        self.progress: dict[str, Any] = {}
        self.boot = time.time_ns()
        self._watches: list[_Watch] = []
        self._names = tuple(names)
        self._told: Told | None = None
        self._hubs: Hubs = {}
        self._owes_topology = False
        self._events: deque[tuple[int, str, str]] = deque()
        self._events_lost = 0
        self._ring: Ring | None = None
        self.writer: WriterProcess | None = None
        self._number = self._noticed = self._gap = self._looks = 0
        self._full = False
        self._rest = Rest()
        self._notice_bytes = options.ring_bytes // 8
        self._notice_timer: TimerHandle | None = None
        self._ledger_timer: TimerHandle | None = None

    def open(self, loop: AbstractEventLoop) -> None:
        """Start the writer. Raises `LinkError` where a package is missing."""
        self._loop = loop
        ring, told = Ring.create(self.options.ring_bytes), Told()
        try:
            writer = WriterProcess(self._settings(ring, told), self._on_line, self._on_lost)
        except BaseException:
            ring.close()
            told.close()
            raise
        told.tell(self._names)
        self._ring, self._told, self.writer, self.state = ring, told, writer, "up"
        writer.open(loop)
        self._ledger_timer = loop.call_later(LEDGER_S / _LOOKS, self._on_ledger)

    @property
    def ring_bytes(self) -> int:
        """The size of the ring."""
        return self.options.ring_bytes

    @property
    def waiting_bytes(self) -> int:
        """What of the ring the writer has not taken yet."""
        return 0 if self._ring is None else self._ring.waiting_bytes

    def know(self, names: Iterable[str]) -> None:
        """Write these names beside the capture too, within a minute."""
        self._names = tuple(names)
        if self._told is not None:
            self._told.tell(self._names)

    def describe(self, hubs: Hubs) -> None:
        """Record which hubs are recorded, and what passes there, if that is new."""
        if hubs != self._hubs:
            self._hubs, self._owes_topology = hubs, True
            self._put_topology()

    def _put_topology(self) -> None:
        """Record the topology if it is owed. If the ring is full, the next look at the ledgers does it."""
        ring = self._ready() if self._owes_topology else None
        if ring and self._put(ring, _TOPOLOGY, _NOWHERE, 1, json.dumps(self._hubs).encode()):
            self._owes_topology = False

    def tell(self, name: str, kind: str, cause: str) -> None:
        """Record an event of the place `name`. If the ring is full, the next look at the ledgers does it."""
        if len(self._events) < _EVENTS:
            self._events.append((time.time_ns(), name, f"{kind}: {cause}"[:_REASON_CHARS]))
        else:
            self._events_lost += 1
        self._put_events()

    def _put_events(self) -> None:
        ring = self._ready()
        if ring is None:
            return
        while self._events and self._put_event(ring, *self._events[0]):
            self._events.popleft()
        if not self._events and self._events_lost:
            words = "lost: events for which there was no room"
            if self._put_event(ring, time.time_ns(), self.name, words, self._events_lost):
                self._events_lost = 0

    def _put_event(self, ring: Ring, ts_ns: int, name: str, words: str, count: int = 1) -> bool:
        data = json.dumps([("", "", 0, words, count)]).encode()
        return self._put(ring, _EVENT, Place(name, "", "", 0).encode(), 1, data, ts_ns)

    def _ready(self) -> Ring | None:
        """Return the ring, once it has taken what tells of a gap; None if it takes nothing now."""
        ring = self._ring
        return None if ring is None or (self._gap and not self._put_gap(ring)) else ring

    def _put(
        self, ring: Ring, kind: int, place: bytes, count: int, data: bytes, ts_ns: int | None = None
    ) -> bool:
        """Put a record that is no frame, and number it. Return False if the ring is full."""
        if not ring.put(kind, place, count, ts_ns or time.time_ns(), self._number, data):
            return False
        self._number += 1
        return True

    def _settings(self, ring: Ring, told: Told) -> dict[str, Any]:
        who = {"gateway": self.gateway, "recorder": self.name, "directory": str(self.directory)}
        memory = {"boot": self.boot, "descriptor": ring.descriptor, "ring_bytes": ring.size_bytes}
        shared = memory | {"names": told.descriptor}
        return self.options._asdict() | {"pattern": Pattern(*self.options.pattern)} | who | shared

    def tap(self, name: str, locate: Locate) -> "_Watch":
        """Make a tap for a place where batches pass; `name` is the place's in the capture."""
        return _Watch(self.record, name, locate)

    def watch(self, hub: Hub, name: str, locate: Locate, locate_link: LocateLink | None = None) -> None:
        """Record what `hub` publishes, and the counts of its links: all on one segment, or as located."""
        self._watches.append(_Watch(self.record, name, locate, hub, locate_link))

    def unwatch(self, hub: Hub) -> None:
        """Record the last of a hub's ledgers, and then nothing more of it. No error if it is not watched."""
        for watch in [watch for watch in self._watches if watch.hub is hub]:
            if self._ring is not None:
                self._put_ledger(self._ring, watch)
            watch.close()
            self._watches.remove(watch)

    def room(self, size_bytes: int) -> bool:
        """Return whether a batch of so many bytes would be recorded now."""
        ring = self._ring
        return ring is not None and not self._full and ring.has_room(size_bytes)

    def record(self, place: bytes, batch: Batch) -> None:
        """Copy `batch` into the ring, or count it as lost."""
        ring, count = self._ring, batch.count
        if ring is None:
            return
        if self._full:
            self._gap += count
            self.lost += count
        elif ring.put(_FRAME, place, count, time.time_ns(), self._number, batch.data):
            self._number += 1
            self.captured += count
            if ring.head - self._noticed > self._notice_bytes:
                self._notice()
            elif self._notice_timer is None:
                self._notice_timer = self._loop.call_later(NOTICE_S, self._notice)
        else:
            self._gap += count
            self.lost += count
            self._full = True
            if self.options.idle:
                self._rest.begin(self._loop.time())
            self._notice()

    def _look(self, ring: Ring) -> None:
        """Record again when the ring is half empty: a few wide gaps tell more, and cost less, than many."""
        room = 2 * ring.waiting_bytes < ring.size_bytes and self._rest.over(self._loop.time())
        if room and self._put_gap(ring):
            self._full = False
        else:
            self._notice_timer = self._loop.call_later(NOTICE_S, self._notice)

    def _put_gap(self, ring: Ring) -> bool:
        """Tell the writer how many are missing before what comes next."""
        if not self._put(ring, _GAP, _NOWHERE, self._gap, b""):
            return False
        self._gap = 0
        return True

    def _notice(self) -> None:
        if self._notice_timer is not None:
            self._notice_timer.cancel()
            self._notice_timer = None
        if self._ring is not None and self.writer is not None:
            self._noticed = self._ring.head
            self.writer.notice(self._noticed)
            if self._full:
                self._look(self._ring)

    def _on_ledger(self) -> None:
        self._ledger_timer = self._loop.call_later(LEDGER_S / _LOOKS, self._on_ledger)
        self._looks = (self._looks + 1) % _LOOKS
        self._rest.look(self._loop.time(), time.process_time())
        if not self._looks:
            self._put_ledgers()

    def _put_ledgers(self) -> None:
        ring = self._ready()
        if ring is None:
            return
        self._put_topology()
        self._put_events()
        for watch in self._watches:
            self._put_ledger(ring, watch)
        self._notice()

    def _put_ledger(self, ring: Ring, watch: "_Watch") -> None:
        """Record the gains of a watch. Rows that a full ring does not take are recorded the next time."""
        gains = watch.gains()
        if not gains:
            return
        data = json.dumps(gains).encode()
        if self._put(ring, _LEDGER, watch.place_of_hub, len(gains), data):
            watch.owed = []
        else:
            watch.owed = gains[-_OWED:]

    def _on_line(self, told: dict[str, Any]) -> None:
        self.progress = told
        self._be(told["state"], told["fault"])

    def _on_lost(self, why: str) -> None:
        self.losses += 1
        self._owes_topology = bool(self._hubs)  # the next writer may know none
        self._put_topology()
        self._be("waiting", why)

    def _be(self, state: Literal["up", "waiting"], fault: str) -> None:
        if state == "waiting" and (self.state, self.fault) != (state, fault):
            log.warning("%s: %s; will go on trying", self.name, fault)
        self.state = state
        self.fault = fault or self.fault

    def close(self) -> None:
        """Stop recording. The writer writes all that is in the ring, and ends. Idempotent."""
        for timer in (self._ledger_timer, self._notice_timer):
            if timer is not None:
                timer.cancel()
        if self._ring is None or self._told is None or self.writer is None:
            return
        self._put_ledgers()
        if self.captured:  # a last row, by which a reader can tell that nothing was left out until here
            self._put_gap(self._ring)
        for watch in self._watches:
            watch.close()
        self.writer.close()
        self._ring.close()
        self._told.close()
        self._ring, self._told, self.state = None, None, "closed"


class _Watch:
    """One tap of a recorder. It finds the place of a pipe once, then only hands over."""

    __slots__ = (
        "_ledger", "_locate", "_locate_link", "_name", "_places", "_record", "hub", "owed", "place_of_hub",
    )  # fmt: skip

    def __init__(
        self,
        record: Callable[[bytes, Batch], None],
        name: str,
        locate: Locate,
        hub: Hub | None = None,
        locate_link: LocateLink | None = None,
    ) -> None:
        self._record, self._name, self._locate, self.hub = record, name, locate, hub
        self._places: dict[int, tuple[Pipe | None, bytes]] = {}
        self._locate_link = locate_link or (lambda link: (locate(None)[0], link))
        self._ledger = None if hub is None else Ledger(hub)
        self.place_of_hub = Place(name, "", "", 0).encode()
        self.owed: list[tuple[str, str, int, str, int]] = []
        if hub is not None:
            hub.tap(self)

    def __call__(self, batch: Batch, pipe: Pipe | None) -> None:
        known = self._places.get(id(pipe))
        place = known[1] if known is not None and known[0] is pipe else self._learn(pipe)
        self._record(place, batch)

    def _learn(self, pipe: Pipe | None) -> bytes:
        if len(self._places) >= _PLACES:
            self._places.clear()
        bus, peer, direction = self._locate(pipe)
        place = Place(self._name, bus, peer, int(direction)).encode()
        self._places[id(pipe)] = pipe, place
        return place

    def gains(self) -> list[tuple[str, str, int, str, int]]:
        """List (bus, link, direction, word, messages more), with the rows still owed first."""
        gains = [] if self._ledger is None else self._ledger.gains()
        return self.owed + [
            (*self._locate_link(link), int(direction), word, count) for link, direction, word, count in gains
        ]

    def close(self) -> None:
        if self.hub is not None:
            self.hub.untap(self)
