"""The hearing of announcements: which gateways said what, and when that was. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from appliance.plant.announcement import note_in
from appliance.plant.note import Note
from appliance.status.times import stamp
from bus.announcements import Announcement, Clocks, read, unproven
from bus.keys import Keyring

MISSED: Final = 2.5
"""A gateway was not heard if nothing came for so many times the pause between two announcements."""


CLOCK: Final = 3
"""The number of announcements by which a clock is judged: one that had to wait on its way seems to be late.
"""


class Said(NamedTuple):
    """The last announcement of a gateway, which came at `at_s`, monotonic, and at `at_ns` by our clock.

    `aheads_ms` are by how much its clock was ahead of ours at the last announcements.
    """

    note: Note
    at_s: float
    at_ns: int
    aheads_ms: tuple[int, ...] = ()

    @property
    def ahead_ms(self) -> int:
        """By how much its clock is ahead of ours."""
        return max(self.aheads_ms)

    @property
    def since(self) -> str:
        """The time of the announcement, for people."""
        return stamp(self.at_ns / 1e9)


LIVES: Final = 4
"""The most processes under the name of one gateway that are told apart."""


class Life(NamedTuple):
    """A process that announces itself under the name of a gateway, by when it started.

    It was heard `times` since `first_s`, last at `last_s`, monotonic, with `time_ns` by its clock.
    """

    page: str
    time_ns: int
    first_s: float
    last_s: float
    times: int = 1


class Hearing:
    """The announcements that came to `gateway`. With a ring, only those that it proves count."""

    def __init__(self, gateway: str) -> None:
        self.said: Mapping[str, Said] = {}
        self._gateway, self._topology = gateway, ""
        self._known = frozenset[str]()
        self._ring: Keyring | None = None
        self._clocks = Clocks()
        self._lives: dict[str, dict[int, Life]] = {}

    def follow(self, topology: str, gateways: frozenset[str], ring: Keyring | None) -> None:
        """Hear the gateways of a topology from now on. `ring` has the keys of the system."""
        if (ring is None) != (self._ring is None):
            self._clocks = Clocks(forgets=ring is None)
        self._topology, self._known, self._ring = topology, gateways, ring
        self.said = {name: one for name, one in self.said.items() if name in gateways}
        self._lives = {name: lives for name, lives in self._lives.items() if name in gateways}

    def hear(self, frame: bytes, now_s: float, now_ns: int) -> Announcement | str:
        """Take an announcement. Return it if it is by a gateway of the system, so that it is passed on.

        Return why it is rejected else; "" for one of another system, and for our own that came back.
        """
        found = read(frame)
        if found is None or found.tokens:
            return "malformed"
        if found.fields.get("topology") != self._topology:
            return ""
        reason = "" if self._ring is None else unproven(frame, self._ring)
        note = None if reason else note_in(found)
        is_own = found.gateway == self._gateway
        if note is None:
            return "" if is_own else reason or "malformed"
        if found.gateway in self._known:
            self.live(note, now_s)
        if is_own:
            return ""
        if found.gateway in self._known and self._clocks.take(found.gateway, found.time_ns, now_s):
            self._note(found, note, now_s, now_ns)
        return found

    def live(self, note: Note, now_s: float) -> None:
        """Note that a process is there, by a note of it, which may be of this one."""
        lives = self._lives.setdefault(note["gateway"], {})
        before = lives.get(note["started_ns"])
        if before is not None and note["time_ns"] <= before.time_ns:
            return
        first_s, times = (now_s, 1) if before is None else (before.first_s, before.times + 1)
        lives[note["started_ns"]] = Life(note["page"], note["time_ns"], first_s, now_s, times)
        if len(lives) > LIVES:
            del lives[min(lives, key=lambda one: lives[one].last_s)]

    def twins(self, now_s: float, most_s: float) -> Iterator[tuple[str, list[str]]]:
        """Yield the gateways of whose name two processes were heard in the last `most_s`, with their pages.

        One that was started again is none: the first is silent then.
        """
        for name, lives in self._lives.items():
            there = [one for one in lives.values() if one.times > 1 and now_s - one.last_s < most_s]
            beside = [one for one in there if any(_beside(one, other) for other in there if other is not one)]
            if beside:
                yield name, sorted({one.page for one in beside if one.page})

    def _note(self, found: Announcement, note: Note, now_s: float, now_ns: int) -> None:
        before = self.said.get(found.gateway)
        aheads_ms = *(before.aheads_ms if before else ()), (found.time_ns - now_ns) // 1_000_000
        self.said = {**self.said, found.gateway: Said(note, now_s, now_ns, aheads_ms[-CLOCK:])}


def _beside(one: Life, other: Life) -> bool:
    """Return whether each of two processes was heard after the other had begun."""
    return one.last_s > other.first_s and other.last_s > one.first_s
