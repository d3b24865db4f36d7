"""The hearing of announcements: which gateways said what, and when that was. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from appliance.plant.announcement import note_in
from appliance.plant.note import Note
from appliance.status.times import stamp
from bus.announcements import Announcement, Clocks, read, unproven
from bus.keys import Keyring

MISSED: Final = 2.5
"""A gateway was not heard if nothing came for so many times the pause between two announcements."""


CLOCK: Final = 3
"""By how many announcements a clock is judged: one that had to wait on its way seems to be late."""


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


class Hearing:
    """The announcements that came to `gateway`. With a ring, only those that it proves count."""

    def __init__(self, gateway: str) -> None:
        self.said: Mapping[str, Said] = {}
        self._gateway, self._topology = gateway, ""
        self._known = frozenset[str]()
        self._ring: Keyring | None = None
        self._clocks = Clocks()

    def follow(self, topology: str, gateways: frozenset[str], ring: Keyring | None) -> None:
        """Hear the gateways of a topology from now on. `ring` has the keys of the system."""
        if (ring is None) != (self._ring is None):
            self._clocks = Clocks(forgets=ring is None)
        self._topology, self._known, self._ring = topology, gateways, ring
        self.said = {name: one for name, one in self.said.items() if name in gateways}

    def hear(self, frame: bytes, now_s: float, now_ns: int) -> Announcement | str:
        """Take an announcement. Return it if it is by a gateway of the system, so that it is passed on.

        Return why it is rejected else; "" for one of another system, and for our own that came back.
        """
        found = read(frame)
        if found is None or found.tokens:
            return "malformed"
        if found.fields.get("topology") != self._topology or found.gateway == self._gateway:
            return ""
        reason = "" if self._ring is None else unproven(frame, self._ring)
        note = None if reason else note_in(found)
        if note is None:
            return reason or "malformed"
        if found.gateway in self._known and self._clocks.take(found.gateway, found.time_ns, now_s):
            self._note(found, note, now_s, now_ns)
        return found

    def _note(self, found: Announcement, note: Note, now_s: float, now_ns: int) -> None:
        before = self.said.get(found.gateway)
        aheads_ms = *(before.aheads_ms if before else ()), (found.time_ns - now_ns) // 1_000_000
        self.said = {**self.said, found.gateway: Said(note, now_s, now_ns, aheads_ms[-CLOCK:])}
