"""The recorder: the gateway's side of a tap (docs/capture.md).

The data path only copies what a hub publishes into a ring in shared memory, once. A process of its own
(`devices/tap/writer.py`) decodes and writes. When the ring is full, messages are dropped and counted.
"""

import json
import logging
import time
from array import array
from asyncio import AbstractEventLoop, TimerHandle
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bus.hub import Hub
from bus.wire.batch import Batch, from_payloads
from bus.wire.pattern import Pattern
from capture.schema import Direction, Hubs, Kind, Verdict
from devices.tap.ledger import Owed
from devices.tap.names import NamesWriter
from devices.tap.process import WriterProcess
from devices.tap.ring import COUNT_MAX, RING_BYTES, RecordPlace, Ring
from devices.tap.watch import FRAME, Locate, LocateLink, Watch
from devices.tap.writer_backoff import WriterBackoff

log = logging.getLogger("buscoupler.tap")

NOTICE_S = 0.02  # at most this late the writer is told of new records
LEDGER_S = 1.0
LOSING_S = 60.0
_LOOKS = 4  # at the processor time, for each look at the ledgers
_LEDGER, _GAP, _TOPOLOGY, _EVENT, _WIRE = map(
    int, (Kind.LEDGER, Kind.GAP, Kind.TOPOLOGY, Kind.EVENT, Kind.WIRE)
)
_NOWHERE = RecordPlace("", "", "", 0).encode()
_EVENTS = 256  # events kept for later while the ring is full
_REASON_CHARS = 256
_COUNTS = "written", "files", "deleted"


class Options(NamedTuple):
    """Settings of a recorder; sizes in bytes, `keep_s` 0 for no limit by age.

    With `idle` the writer runs only in spare processor time. If that is not enough and the data path is
    busy, recording pauses for some seconds (`devices.tap.writer_backoff`).
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
    """Records below `directory` what the hubs of `watch` move.

    `state` is `closed`, `up` or `waiting` (no disk or no writer: it retries), `fault` the last error,
    `losses` the number of writer processes that ended by themselves. `captured` counts messages put into the
    ring, `lost` those that found it full: both before the writer leaves out what is not of `pattern`.
    `progress` is the writer's last report, and `counts` has what all writers have reported: rows `written`,
    `files` finished and `deleted`. `names` are stored beside the capture.
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
        self._before = Counter[str]()  # the counts of writers that have ended
        self.boot = time.time_ns()
        self._watches: list[Watch] = []
        self._names = tuple(names)
        self._names_writer: NamesWriter | None = None
        self._hubs: Hubs = {}
        self._owes_topology = False
        self._owed = Owed()
        self._events: deque[tuple[int, str, str]] = deque()
        self._events_lost = 0
        self._ring: Ring | None = None
        self.writer: WriterProcess | None = None
        self._number = self._noticed = self._gap = self._looks = 0
        self._full = False
        self._lost_before, self._lost_s = 0, float("-inf")
        self._backoff = WriterBackoff()
        self._notice_bytes = options.ring_bytes // 8
        self._notice_timer: TimerHandle | None = None
        self._ledger_timer: TimerHandle | None = None

    def open(self, loop: AbstractEventLoop) -> None:
        """Start the writer. Raises `LinkError` if a package is missing."""
        self._loop = loop
        ring, names_writer = Ring.create(self.options.ring_bytes), NamesWriter()
        try:
            writer = WriterProcess(self._settings(ring, names_writer), self._on_line, self._on_lost)
        except BaseException:
            ring.close()
            names_writer.close()
            raise
        names_writer.write(self._names)
        self._ring, self._names_writer, self.writer, self.state = ring, names_writer, writer, "up"
        writer.open(loop)
        self._ledger_timer = loop.call_later(LEDGER_S / _LOOKS, self._on_ledger)

    @property
    def is_losing(self) -> bool:
        """Whether messages were lost within the last `LOSING_S`."""
        return self._ring is not None and self._loop.time() - self._lost_s < LOSING_S

    @property
    def ring_bytes(self) -> int:
        """The size of the ring."""
        return self.options.ring_bytes

    @property
    def waiting_bytes(self) -> int:
        """The bytes of the ring that the writer has not written yet."""
        return 0 if self._ring is None else self._ring.waiting_bytes

    @property
    def counts(self) -> dict[str, int]:
        """The sums of what all writers have reported: `written`, `files` and `deleted`."""
        return {name: self._before[name] + int(self.progress.get(name, 0)) for name in _COUNTS}

    def know(self, names: Iterable[str]) -> None:
        """Store these names beside the capture too, within a minute."""
        self._names = tuple(names)
        if self._names_writer is not None:
            self._names_writer.write(self._names)

    def describe(self, hubs: Hubs) -> None:
        """Record the topology of the recorded hubs, if it has changed."""
        if hubs != self._hubs:
            self._hubs, self._owes_topology = hubs, True
            self._put_topology()

    def _put_topology(self) -> None:
        """Record a topology that is not recorded yet. If the ring is full, the next ledger row retries."""
        ring = self._ready() if self._owes_topology else None
        if ring and self._put(ring, _TOPOLOGY, _NOWHERE, 1, json.dumps(self._hubs).encode()):
            self._owes_topology = False

    def tell(self, name: str, kind: str, cause: str) -> None:
        """Record an event of the part `name`. If the ring is full, the next ledger row retries."""
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
        return self._put(ring, _EVENT, RecordPlace(name, "", "", 0).encode(), 1, data, ts_ns)

    def _ready(self) -> Ring | None:
        """Return the ring once it has taken the record of the last gap; None if it is full or closed."""
        ring = self._ring
        return None if ring is None or (self._gap and not self._put_gap(ring)) else ring

    def _put(
        self, ring: Ring, kind: int, place: bytes, count: int, data: bytes, ts_ns: int | None = None
    ) -> bool:
        """Put a numbered record that is no frame. Return False if the ring is full."""
        if not ring.put(kind, place, count, ts_ns or time.time_ns(), self._number, data):
            return False
        self._number += 1
        return True

    def _settings(self, ring: Ring, names_writer: NamesWriter) -> dict[str, Any]:
        identity = {"gateway": self.gateway, "recorder": self.name, "directory": str(self.directory)}
        memory = {"boot": self.boot, "descriptor": ring.descriptor, "ring_bytes": ring.size_bytes}
        shared = memory | {"names": names_writer.descriptor}
        return self.options._asdict() | {"pattern": Pattern(*self.options.pattern)} | identity | shared

    def tap(self, name: str, locate: Locate) -> Watch:
        """Return a callable that records each batch given to it. `name` is its hub in the capture."""
        return Watch(self.record, name, locate)

    def came(self, name: str, segments: Mapping[str, str]) -> Callable[[Batch, str], None]:
        """Return a callable that records a batch which came in by a side of the hub `name` while that stood
        by, and goes out now. `segments` are those of its sides, by their names."""

        def record(batch: Batch, side: str) -> None:
            place = RecordPlace(name, segments.get(side, side), "", int(Direction.RX), int(Verdict.STANDBY))
            self.record(place.encode(), batch)

        return record

    def wire(self, place: RecordPlace) -> Callable[[Sequence[bytes], bool, Sequence[int]], None]:
        """Return a callable that records items on the wire of a side, as `bridges.media.wire.Hear` has it.
        `place` is where they are received; its `reason` names the items."""
        places = [place._replace(dir=int(way)).encode() for way in (Direction.RX, Direction.TX)]

        def record(items: Sequence[bytes], is_sent: bool, came_ns: Sequence[int]) -> None:
            self.record(places[is_sent], from_payloads(items), _WIRE, came_ns)

        return record

    def watch(self, hub: Hub, name: str, locate: Locate, locate_link: LocateLink | None = None) -> None:
        """Record what `hub` publishes, and the counts of its links.

        `locate_link` says on which segment each link is; without it all are on one.
        """
        self._watches.append(Watch(self.record, name, locate, hub, locate_link))

    def unwatch(self, hub: Hub) -> None:
        """Record the last counts of a hub, and stop watching it. No error if it is not watched."""
        for watch in [watch for watch in self._watches if watch.hub is hub]:
            self._owed.add(watch.place_of_hub, watch.gains())
            watch.close()
            self._watches.remove(watch)
        self._put_owed()

    def room(self, size_bytes: int) -> bool:
        """Return whether a batch of `size_bytes` would be recorded now."""
        ring = self._ring
        return ring is not None and not self._full and ring.has_room(size_bytes)

    def record(self, place: bytes, batch: Batch, kind: int = FRAME, came_ns: Sequence[int] = ()) -> None:
        """Copy `batch` into the ring, or count it as lost. `kind`: of frames, or of items on a wire.

        `came_ns`: when each message came, where a kernel or an adapter told; 0 where it did not.
        """
        ring, count = self._ring, batch.count
        if ring is None:
            return
        if self._full:
            self._gap += count
            self.lost += count
        elif ring.put(kind, place, count, time.time_ns(), self._number, batch.data, _times(came_ns, count)):
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
                self._backoff.begin(self._loop.time())
            self._notice()

    def _look(self, ring: Ring) -> None:
        """Resume recording once the ring is half empty: few wide gaps cost less than many."""
        room = 2 * ring.waiting_bytes < ring.size_bytes and self._backoff.over(self._loop.time())
        if room and self._put_gap(ring):
            self._full = False
        else:
            self._notice_timer = self._loop.call_later(NOTICE_S, self._notice)

    def _put_gap(self, ring: Ring) -> bool:
        """Record how many messages are missing before the next record. Return False if the ring is full."""
        while True:
            count = min(self._gap, COUNT_MAX)
            if not self._put(ring, _GAP, _NOWHERE, count, b""):
                return False
            self._gap -= count
            if not self._gap:
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
        if self.lost > self._lost_before:
            self._lost_before, self._lost_s = self.lost, self._loop.time()
        self._backoff.look(self._loop.time(), time.process_time())
        if not self._looks:
            self._put_ledgers()

    def _put_ledgers(self) -> None:
        if self._ring is None:
            return
        for watch in self._watches:
            self._owed.add(watch.place_of_hub, watch.gains())
        self._put_topology()
        self._put_events()
        self._put_owed()
        self._notice()

    def _put_owed(self) -> None:
        """Record the new counts of hubs. If the ring is full, they are kept for the next time."""
        ring = self._ready()
        if ring is None:
            return
        for place, rows in self._owed.parts():
            if not self._put(ring, _LEDGER, place, len(rows), json.dumps(rows).encode()):
                return
            self._owed.remove(place, rows)

    def _on_line(self, report: dict[str, Any]) -> None:
        self.progress = report
        self._be(report["state"], report["fault"])

    def _on_lost(self, why: str) -> None:
        self.losses += 1
        self._before, self.progress = Counter(self.counts), {}
        self._owes_topology = bool(self._hubs)  # the next writer may know none
        self._put_topology()
        self._be("waiting", why)

    def _be(self, state: Literal["up", "waiting"], fault: str) -> None:
        if state == "waiting" and (self.state, self.fault) != (state, fault):
            log.warning("%s: %s; will go on trying", self.name, fault)
        self.state = state
        self.fault = fault or self.fault

    def close(self) -> None:
        """Stop recording. The writer writes what is left in the ring, and ends. Idempotent."""
        for timer in (self._ledger_timer, self._notice_timer):
            if timer is not None:
                timer.cancel()
        if self._ring is None or self._names_writer is None or self.writer is None:
            return
        self._put_ledgers()
        if self.captured:  # a last row, by which a reader can tell that nothing was left out until here
            self._put_gap(self._ring)
        for watch in self._watches:
            watch.close()
        self.writer.close()
        self._ring.close()
        self._names_writer.close()
        self._ring, self._names_writer, self.state = None, None, "closed"


def _times(came_ns: Sequence[int], count: int) -> bytes:
    """Return the times of `count` messages for the ring; b"" if some are not known."""
    known = len(came_ns) == count and all(came_ns)
    return array("Q", came_ns).tobytes() if known and count else b""
