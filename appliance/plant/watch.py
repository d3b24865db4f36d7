"""The watch on the other gateways of a plant: hears them, asks those that are not heard, and announces us."""

import logging
import time
from asyncio import AbstractEventLoop, Task
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from appliance.plant.announcement import announced
from appliance.plant.asking import GatewayAnswer, ask_others
from appliance.plant.files import FileWatch
from appliance.plant.hearing import MISSED, Hearing
from appliance.plant.note import Note, note_of
from appliance.plant.places import PagePlace, places
from appliance.plant.verdict import Seen, doubled, judged
from appliance.status.health import Concern
from appliance.status.silent import HEARD_MS
from appliance.status.words import TWINS
from bus.announcements import Announcement
from bus.keys import Keyring
from topologies.model import Topology
from topologies.picture.marks import Mark

log = logging.getLogger("buscoupler")

EVERY_S: Final = 5.0
"""The time between two looks, and two announcements. It is longer for more than 26 gateways, so that each is
asked, and hears, five times a second at most."""
SOON_S: Final = 1.0
"""A change is announced so long after the last announcement; the first comes so long after the start.

A gateway that is heard again is answered as soon, where more than 26 would answer one after the other.
"""
_SHARE_S: Final = 0.2
_LEVELS = {"ok": logging.INFO, "degraded": logging.WARNING, "trouble": logging.WARNING}

Ask = Callable[[str, Sequence[str], Sequence[PagePlace]], Awaitable[dict[str, GatewayAnswer]]]


class PlantWatch:
    """The knowledge that this gateway has of the others.

    `record` makes an event when the word for the plant changes. `clock` gives seconds, monotonic, and
    `clock_ns` the time since 1970.

    A gateway that does not answer once keeps its last answer until the next look.
    """

    def __init__(
        self,
        gateway: str,
        record: Callable[..., Any],
        ask: Ask = ask_others,
        clock: Callable[[], float] = time.monotonic,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._gateway, self._record, self._ask, self._clock_ns = gateway, record, ask, clock_ns
        self._clock = clock
        self._heard: Mapping[str, GatewayAnswer] = {}
        self._missed = frozenset[str]()
        self._there = set[str]()
        self._twice: Mapping[str, Mapping[str, int]] = {}
        self._both = frozenset[str]()
        self._word, self._due_s = "ok", float("-inf")
        self._task: Task[None] | None = None
        self._hearing, self._files = Hearing(gateway), FileWatch()
        self._ring: Keyring | None = None
        self._every_s, self._turn_s = EVERY_S, 0.0
        self._answer_s = float("inf")
        self._said: tuple[object, ...] = ()
        self._said_s: float | None = None
        self._said_ns = 0

    def follow(self, topology: Topology, ring: Keyring | None) -> None:
        """Hear the gateways of a topology from now on. `ring` has the keys of the system, None for none."""
        self._ring = None if ring is None else ring.derive(b"plant", topology.name.encode())
        names = list(topology.gateways)
        self._every_s = max(EVERY_S, _SHARE_S * (len(names) - 1))
        self._turn_s = (self._every_s - EVERY_S) * names.index(self._gateway) / len(names)
        self._hearing.follow(topology.name, frozenset(topology.gateways), self._ring)

    # ---- announcements

    def hear(self, frame: bytes) -> Announcement | str:
        """Take an announcement, as `bus.announcements.Hear`."""
        now_s, before = self._clock(), self._hearing.said
        found = self._hearing.hear(frame, now_s, self._clock_ns())
        if self._hearing.said is not before and isinstance(found, Announcement):
            one = before.get(found.gateway)
            if one is None or not self._is_fresh(one.at_s, MISSED):
                self._answer_s = min(self._answer_s, now_s + self._turn_s)
        return found

    def is_due(self, now_s: float, changing: tuple[object, ...]) -> bool:
        """Return whether this gateway is to announce itself now: every few seconds, and soon after a change.

        `changing` is what the others are to know soon. One that was not heard before is to hear us soon too.
        """
        if self._said_s is None:
            self._said_s = now_s
        soon = self._said != changing or now_s >= self._answer_s
        return now_s - self._said_s >= (SOON_S if soon else self._every_s)

    def announcement(
        self, status: Mapping[str, Any], marks: Mapping[str, Mark], changing: tuple[object, ...]
    ) -> bytes:
        """Return the announcement of this gateway, from as much of its status as a note needs.

        `marks` are those of its own things in the picture.
        """
        self._said, self._said_s, self._answer_s = changing, self._clock(), float("inf")
        self._said_ns = max(self._said_ns + 1, self._clock_ns())
        note = note_of({**status, "time_ns": self._said_ns})
        self._hearing.live(note, self._said_s)
        return announced(note, marks, self._ring)

    # ---- answers

    def look(self, now_s: float, topology: Topology, loop: AbstractEventLoop, asks: bool = True) -> bool:
        """Ask the others that are not heard, if it is time, and if this gateway `asks` at all.

        Return whether it was time. `now_s` is monotonic.
        """
        others = [name for name in topology.gateways if name != self._gateway]
        if not others or now_s < self._due_s or (self._task is not None and not self._task.done()):
            return False
        self._due_s = now_s + self._every_s
        if asks:
            fresh = self._fresh(MISSED)
            where = [one for one in places(topology, self._gateway) if one.gateway not in fresh]
            self._task = loop.create_task(self._go(topology.name, others, where), name="plant")
        return True

    async def _go(self, topology: str, others: Sequence[str], where: Sequence[PagePlace]) -> None:
        try:
            self.take(await self._ask(topology, others, where))
        except Exception:  # a defect of ours must not end the watch
            log.exception("the other gateways could not be asked")

    def take(self, heard: Mapping[str, GatewayAnswer]) -> None:
        """Take the answers of one look."""
        silent = frozenset(
            name for name in {*heard, *self._there} if name not in heard or not heard[name].note
        )
        new = {name: one for name, one in heard.items() if one.note is not None or name in self._missed}
        kept = {name: one for name, one in self._heard.items() if name in silent - self._missed}
        self._heard, self._missed = kept | new, silent
        self._there |= heard.keys() - silent

    # ---- both

    def _fresh(self, pauses: float) -> dict[str, GatewayAnswer]:
        """Return the gateways that announced themselves within so many pauses."""
        return {
            name: GatewayAnswer(name, one.note, "", one.ahead_ms)
            for name, one in self._hearing.said.items()
            if self._is_fresh(one.at_s, pauses)
        }

    def _is_fresh(self, at_s: float, pauses: float) -> bool:
        return self._clock() - at_s < pauses * self._every_s

    def _known(self) -> dict[str, GatewayAnswer]:
        """Return what is known of each gateway: its answer, else its announcement, else why there is none."""
        found = {
            name: GatewayAnswer(name, None, self._why(name), since=one.since)
            for name, one in self._hearing.said.items()
        }
        answers = {name: one for name, one in self._heard.items() if one.note is not None}
        return dict(self._heard) | found | self._fresh(MISSED) | answers

    def _why(self, name: str) -> str:
        return self._heard[name].why if name in self._heard else ""

    def shown(self, status: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plant as a status has it, from the status of this gateway."""
        return self._judged(status, heard_ms(status))

    def _judged(self, status: Mapping[str, Any], claims: Mapping[str, int]) -> dict[str, Any]:
        return judged(note_of(status), status["gateways"], self._seen(status, claims), self._both)

    def _seen(self, status: Mapping[str, Any], claims: Mapping[str, int]) -> dict[str, Seen]:
        known = self._known()
        return {
            name: Seen(known.get(name), name in self._there, claims.get(name, HEARD_MS) < HEARD_MS)
            for name in status["gateways"]
        }

    def judge(self, status: Mapping[str, Any], claims: Mapping[str, int]) -> None:
        """Record an event if the plant has another word than at the last look.

        `status` has what a note and the verdict need; `claims` are the ages in ms of claims at brokers here.
        """
        self._compare(note_of(status))
        shown = self._judged(status, claims)
        if shown["word"] != self._word:
            self._word = shown["word"]
            self._record("health", "plant", shown["line"], _LEVELS[shown["word"]])

    def _compare(self, own: Note) -> None:
        """Note the leases that several say to hold. The word of one that died does not count: it said nothing
        after another had taken over."""
        heard = self._fresh(MISSED) | {name: one for name, one in self._heard.items() if one.note is not None}
        notes = {name: one.note for name, one in heard.items() if one.note is not None}
        notes[self._gateway] = own
        held = {
            lease: {name: notes[name]["time_ns"] for name in names if name != self._gateway}
            for lease, names in doubled(notes).items()
        }
        first = {lease: {**times, **self._twice.get(lease, {})} for lease, times in held.items()}
        self._both = frozenset(
            lease for lease, times in held.items() if all(times[name] > first[lease][name] for name in times)
        )
        self._twice = {lease: {name: first[lease][name] for name in times} for lease, times in held.items()}

    def concerns(self, file: str, told: Collection[str] = ()) -> Iterator[Concern]:
        """Yield the concern that this gateway, which runs a `file` by its hash, has another than most, and
        gateways that have one name, except those that are `told` already."""
        for name, pages in self._hearing.twins(self._clock(), MISSED * self._every_s):
            where = f", with pages at {' and '.join(pages)}" if pages else ""
            if name not in told:
                text = f"several announce themselves by this name{where}: {TWINS}"
                yield Concern("trouble", f"gateway {name}", text)
        notes = {name: heard.note for name, heard in self._known().items() if heard.note is not None}
        others = {name: note["file"] for name, note in notes.items()}
        yield from self._files.concerns(file, others, self._clock())

    @property
    def answering(self) -> frozenset[str]:
        """The other gateways that have answered, or were heard."""
        return frozenset(name for name, heard in self._known().items() if heard.note is not None)

    def marks(self) -> dict[str, Any]:
        """Return the marks that the others have said of their own things in the picture."""
        found = dict[str, Any]()
        for heard in self._known().values():
            if heard.note is not None:
                found |= heard.note.get("marks", {})
        return found

    def close(self) -> None:
        """Ask no more. Idempotent; an answer that is under way is not waited for."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


def heard_ms(status: Mapping[str, Any]) -> dict[str, int]:
    """Return the age of the last claim of each gateway at a broker of a status, in milliseconds."""
    found = dict[str, int]()
    for lease in (lease for broker in status["brokers"] for lease in broker["leases"]):
        for one in lease["candidates"]:
            found[one["name"]] = min(one["silent_ms"], found.get(one["name"], HEARD_MS))
    return found
