"""Frames that two gateways kept: a holder that died, and its stand-in, which sent them at the takeover. Pure.

Both put the same key on a frame, and it came to both at the same time. So of a frame that a stand-in sent
again, what the dead holder had kept is known when that returns, and the other way round. Keys come back after
20 s (`bridges.handover.stamps`), so a key alone says nothing of messages that waited.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

NEAR_MS: Final = 10_000
"""The two times of one frame differ by less: a window is not longer, and a key does not come back so soon."""
REPLAYED_MAX, LATE_MAX = 65_536, 16_384
"""Keys that are remembered, at least: of frames that stand-ins sent, and of others that waited."""


class _Came(NamedTuple):
    """The journal that had a frame, and when it was said, in ms."""

    journal: int
    time_ms: int


class _Keys:
    """Keys with where they came from; those beyond twice `least` are forgotten, the oldest first."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._young, self._old = dict[bytes, _Came](), dict[bytes, _Came]()

    def add(self, keys: Iterable[bytes], came: _Came) -> None:
        self._young.update(dict.fromkeys(keys, came))
        if len(self._young) >= self._least:
            self._young, self._old = {}, self._young

    def has(self, key: bytes, came: _Came) -> bool:
        """Tell whether another journal had the frame at about the same time."""
        found = self._young.get(key) or self._old.get(key)
        if found is None or found.journal == came.journal:
            return False
        return abs(found.time_ms - came.time_ms) <= NEAR_MS

    def __bool__(self) -> bool:
        return bool(self._young or self._old)


class Replays:
    """The memory of one receiver, while it runs."""

    def __init__(self) -> None:
        self._replayed, self._late = _Keys(REPLAYED_MAX), _Keys(LATE_MAX)

    def take(
        self, keys: list[bytes], journal: int, time_ms: int, is_replayed: bool, is_late: bool
    ) -> list[bool]:
        """Note frames with these keys (b"" for none), that `journal` has and that were said at `time_ms`.

        Return for each whether it came before, from another one; [] if none did. What is not late is known by
        its key alone, elsewhere.
        """
        came = _Came(journal, time_ms)
        known = self._known(keys, came, is_replayed) if is_late else []
        if is_replayed:
            self._replayed.add(filter(None, keys), came)
        elif is_late:
            self._late.add(filter(None, keys), came)
        return known

    def _known(self, keys: list[bytes], came: _Came, is_replayed: bool) -> list[bool]:
        memories = [one for one in (self._replayed, self._late if is_replayed else None) if one]
        if not memories:
            return []
        found = [bool(key) and any(one.has(key, came) for one in memories) for key in keys]
        return found if any(found) else []
