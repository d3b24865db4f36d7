"""Seals: signatures behind the messages of a trunk on a wire that several share (docs/wire/signed.md). Pure.

There is no handshake on such a wire, and receivers may come late. So each message says who sent it and when,
and each receiver remembers how far each sender has come. Nothing is remembered of a message that does not
verify.
"""

from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Iterable
from struct import Struct

from bridges.media.medium import CLOCK_S, SEAL_BYTES
from bus.keys import TAG_BYTES, Keyring
from bus.wire.envelope import message_bytes

SENDERS = 256
RECENT = 64
"""The number of a sender's messages that may overtake each other."""

# Sender, and the time in units of 10 microseconds since 1970: its upper 16 bits first.
_STAMP = Struct(">IHI")
_UNITS = 100_000  # in a second
_AHEAD = _UNITS  # our times are this far ahead of the clock only where it was set back
_NEXT = 0x9E3779B1  # the next number of a sender is far from this one
_TIME_MAX = (1 << 48) - 1

WORDS = {
    "unsigned": "it is not signed: give all on this wire the same keys",
    "forged": "it is signed with no key that is here: give all on this wire the same keys",
    "replayed": "it was said before",
    "clock": f"its sender's clock is more than {CLOCK_S:g} s from ours: set the clocks",
}
"""The fault of a message in words, by the reason for which it is rejected."""


def is_message(data: bytes) -> bool:
    """Tell whether these bytes are one whole message, with nothing behind it but padding."""
    size = message_bytes(data)
    return bool(size) and not any(data[size:])


class _Heard:
    """The times of one sender's messages: `recent` are the last ones, in order; all up to `floor` are old."""

    __slots__ = ("floor", "recent")

    def __init__(self, floor: int) -> None:
        self.floor, self.recent = floor, [floor]

    def is_new(self, time: int) -> bool:
        """Note a message with this time. Return whether it is the first."""
        if time <= self.floor or time in self.recent:
            return False
        insort(self.recent, time)
        if len(self.recent) > RECENT:
            self.floor = self.recent.pop(0)
        return True


class Seals:
    """The seals of one link: made by it as `sender` (u32), and verified.

    `purpose` keeps a signature on one kind of wire from being valid on another. `clock` gives the seconds
    since 1970, and `elapsed` those since any moment, which nobody sets. `rejected` counts discarded messages,
    and `tell(reason)` is called the first time for each reason. `is_plain(data)` recognises a message without
    a seal.

    A clock that was set back may be right now, or was right before: it is believed if it agrees with what it
    said at the beginning, or with another sender. Then our times go back, too, under a new number.
    """

    def __init__(
        self,
        ring: Keyring,
        purpose: str,
        sender: int,
        clock: Callable[[], float],
        rejected: dict[str, int],
        tell: Callable[[str], None] = lambda _: None,
        elapsed: Callable[[], float] = lambda: 0.0,
        is_plain: Callable[[bytes], bool] = is_message,
    ) -> None:
        self._purpose, self._clock, self._elapsed = purpose.encode(), clock, elapsed
        self._sender, self._own = sender, {sender}
        self._began = self._now() - self._since()
        self._doubts = False
        self._rejected, self._tell = rejected, tell
        self._is_plain = is_plain
        self._heard: OrderedDict[int, _Heard] = OrderedDict()
        self._last = 0
        self.rekey(ring)

    def rekey(self, ring: Keyring) -> None:
        """Sign and verify with other keys from now on."""
        self.ring, self._ring = ring, ring.derive(b"wire", self._purpose)
        self._told = set[str]()

    def seal(self, data: bytes) -> bytes:
        """Return `data` with a seal of its own. Its time is later than that of all before, until 2059.

        That holds for all messages with one number of a sender.
        """
        now = self._now()
        if self._last > now + _AHEAD:
            self._judge_clock(now)
        self._last = min(max(now, self._last + 1), _TIME_MAX)
        body = data + _STAMP.pack(self._sender, self._last >> 32, self._last & 0xFFFFFFFF)
        return body + self._ring.sign(body)

    def _now(self) -> int:
        return int(self._clock() * _UNITS)

    def _since(self) -> int:
        return int(self._elapsed() * _UNITS)

    def _judge_clock(self, now: int) -> None:
        """Take another number if the clock is right where it is now."""
        self._doubts = abs(now - self._since() - self._began) > CLOCK_S * _UNITS
        if not self._doubts:
            self._sender, self._last = (_NEXT * self._sender + 1) & 0xFFFFFFFF, 0
            self._own = {self._sender, *list(self._own)[: SENDERS - 1]}

    def _weigh(self, time: int) -> None:
        """Believe the clock if another sender has the same time."""
        now = self._now()
        if abs(time - now) <= CLOCK_S * _UNITS:
            self._began, self._doubts = now - self._since(), False

    def opened(self, sealed: Iterable[bytes]) -> list[bytes]:
        """Return the messages that senders with our keys have just sent, without their seals."""
        return [data for one in sealed if (data := self.open(one)) is not None]

    def open(self, sealed: bytes) -> bytes | None:
        """Return the content of a sealed message; None, counted by its reason, if it does not count."""
        body, tag = sealed[:-TAG_BYTES], sealed[-TAG_BYTES:]
        if len(sealed) < SEAL_BYTES or not self._ring.verify(tag, body):
            reason = "unsigned" if self._is_plain(sealed) else "forged"
        else:
            sender, high, low = _STAMP.unpack_from(body, len(body) - _STAMP.size)
            reason = self._judge(sender, high << 32 | low)
        if reason:
            self._reject(reason)
        return None if reason else body[: -_STAMP.size]

    def _judge(self, sender: int, time: int) -> str:
        """Return why a verified message does not count; "" if it does."""
        if sender in self._own:
            return "echo"
        if self._doubts:
            self._weigh(time)
        heard = self._heard.get(sender)
        if heard is None:
            if abs(time - self._now()) > CLOCK_S * _UNITS:
                return "clock"
            if len(self._heard) >= SENDERS:
                self._heard.popitem(last=False)
            self._heard[sender] = _Heard(time)
            return ""
        self._heard.move_to_end(sender)
        return "" if heard.is_new(time) else "replayed"

    def _reject(self, reason: str) -> None:
        self._rejected[reason] = self._rejected.get(reason, 0) + 1
        if reason in WORDS and reason not in self._told:
            self._told.add(reason)
            self._tell(reason)


def unsealed(sealed: bytes) -> bytes:
    """Return the content of a message that we have sealed ourselves."""
    return sealed[:-SEAL_BYTES]
