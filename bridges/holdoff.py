"""Hold-off on a trunk that other appliances share: a message that another sends first is not sent again.

All but the first in rank hold a frame back for their rank times 40 ms.
"""

import asyncio
from asyncio import TimerHandle
from collections.abc import Callable

from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import LAYOUT, is_enveloped

COUNT = 8192  # held at a time; more are sent at once
HandOn = Callable[[Batch], None]


class HoldOff:
    """A queue that holds messages with envelopes for `hold_s`, in order, unless their key is heard meanwhile.

    In the port's ledger they are `queued`, then `sent`, or dropped as `heard`. A port is known here by its
    ledger. `needed()` says whether there is anybody to wait for, for example while another candidate may be
    forwarding.
    """

    def __init__(
        self, hold_s: float, clock: Callable[[], float], needed: Callable[[], bool] = lambda: True
    ) -> None:
        self._hold_s, self._clock, self._needed = hold_s, clock, needed
        self._held: dict[tuple[int, int], tuple[Stats, HandOn, bytes, float]] = {}  # by key and ledger
        self._timer: TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._held)

    def wanted(self) -> bool:
        """Tell whether messages must wait here. Messages behind held ones must, so that order is kept."""
        return bool(self._held) or self._needed()

    def put(self, stats: Stats, hand_on: HandOn, batch: Batch, since_s: float | None = None) -> None:
        """Hold messages that are on their way out, until `hand_on` takes them. `stats` has them as offered.

        `since_s`: since when they have waited, if not from now: at a takeover.
        """
        since_s = self._clock() if since_s is None else since_s
        due_s = since_s + (self._hold_s if self._needed() else 0.0)
        for message in payloads(batch):
            key = _key(message), id(stats)
            if key in self._held or len(self._held) >= COUNT:
                hand_on(from_payloads([message]))
                continue
            self._held[key] = stats, hand_on, message, due_s
            stats.queued += 1
            stats.queued_bytes += len(message)
        self._arm()

    def hear(self, batch: Batch) -> None:
        """Drop held messages that came in on this side: another has sent them, so we need not."""
        if not self._held:
            return
        heard = {_key(message) for message in payloads(batch)}
        for key in [key for key in self._held if key[0] in heard]:
            self._drop(key, "heard")

    def _let_go(self, key: tuple[int, int]) -> tuple[Stats, HandOn, bytes]:
        stats, hand_on, message, _ = self._held.pop(key)
        stats.queued -= 1
        stats.queued_bytes -= len(message)
        return stats, hand_on, message

    def _drop(self, key: tuple[int, int], reason: str) -> bytes:
        stats, _, message = self._let_go(key)
        stats.drop(reason)
        return message

    def _arm(self) -> None:
        if self._timer is None and self._held:
            first = next(iter(self._held.values()))
            wait_s = max(0.0, first[-1] - self._clock())
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._on_due)

    def _on_due(self) -> None:
        self._timer = None
        now = self._clock()
        self._send_while(lambda due_s: due_s <= now)
        self._arm()

    def _send_while(self, is_due: Callable[[float], bool]) -> None:
        """Send what is held, in order, up to the first message that is not due.

        What takes a message may fail, and others may answer at once, so any call can take out the rest.
        """
        for key in list(self._held):
            held = self._held.get(key)
            if held is None:
                continue
            if not is_due(held[-1]):
                break
            _, hand_on, message = self._let_go(key)
            hand_on(from_payloads([message]))

    def revise(self, hold_s: float) -> None:
        """Hold later messages for another time. Messages that wait already leave when they were due."""
        self._hold_s = hold_s

    def release(self) -> None:
        """Send all held messages now."""
        self._send_while(lambda _: True)

    def purge(self, reason: str) -> list[bytes]:
        """Drop all held messages, counted by `reason`; return them."""
        return [self._drop(key, reason) for key in list(self._held)]

    def forget(self, stats: Stats) -> None:
        """Drop the held messages of a port that was detached."""
        for key in [key for key in self._held if key[1] == id(stats)]:
            self._drop(key, "closed")


def _key(message: bytes) -> int:
    """Return origin and sequence as one number.

    A message without an envelope (none should come) has a key by content.
    """
    if is_enveloped(message):
        _, _, _, origin, sequence = LAYOUT.unpack_from(message)
        return int(origin) << 32 | int(sequence)
    return -1 - (hash(message) & 0xFFFFFFFF)
