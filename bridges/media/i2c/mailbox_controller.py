"""The gateway's end of the I2C mailbox, for one target (docs/wire/i2c.md; wire spec section 7)."""

from typing import Literal, NamedTuple

from bridges.media.i2c.mailbox_segments import (
    ACK,
    DATA_END,
    EPOCH,
    SEGMENT_BYTES,
    TARGET_CTL,
    Inbox,
    Outbox,
    Timing,
)

_ACTIVE_S = 0.25
"""A target counts as active for this time after its last progress, in seconds."""

MailState = Literal["linking", "up", "stalled", "absent"]


class Access(NamedTuple):
    """One access to a target: read `size` bytes from `register`, or write `data` there if `size` is 0.

    It has at most 32 bytes, the limit of an SMBus block.
    """

    register: int
    size: int = 0
    data: bytes = b""


POLL = Access(TARGET_CTL, 2)


def _segment(ctl: int, size: int) -> int:
    """Return `ctl` and `size` (n) as one number, without ACK, which may change while a segment is up."""
    return (ctl & ~ACK) << 8 | size


class Controller:
    """The gateway's end. Make the access that `next` returns, then call `done` or `failed`.

    If `next` returns None, rest until `due_s`. A turn is a poll, then a read if the target has a segment, and
    a write if there is something to send. Call `send` only while `ready`. `outcome` is the result of that
    message: None while in flight, then `sent`, `stalled` or `reset`. `state` is `linking` (no epoch agreed
    yet), `up`, `stalled` (the target answers, but does not serve its mailbox) or `absent` (no answer for
    `stall_s`). `links`, `resets` and `nacks` are counters; `rejected` counts reads that were nothing, too:
    `length` (not the bytes asked for, or an n above 30), `torn` (the segment changed between two reads) and
    `unserved` (polls while `stalled`). `idle_s` may be changed at any time. Never raises
    for bad data from the wire.
    """

    def __init__(self, timing: Timing | None = None, rejected: dict[str, int] | None = None) -> None:
        self.timing = timing or Timing()
        self.idle_s = self.timing.idle_s
        self.state: MailState = "linking"
        self.outcome: str | None = None
        self.due_s = 0.0
        self.links = self.resets = self.nacks = 0
        self.inbox, self._out = Inbox(rejected=rejected), Outbox()
        self._epoch = 0
        self._seen: int | None = None  # bits that are out of step, or what `_segment` gives
        self._linked = self._dirty = self._moved = False
        self._access: Access | None = None
        self._pause_s = 0.0
        self._heard_s: float | None = None
        self._polled_s = self._wrote_s = self._waits_s = self._active_s = 0.0

    @property
    def ready(self) -> bool:
        """Whether the mailbox is linked and nothing is in flight."""
        return self._linked and not self._out.busy

    @property
    def resting(self) -> bool:
        """Whether no turn is under way."""
        return self._access is None

    def send(self, now: float, message: bytes) -> None:
        """Begin a transfer of 4 to 3084 bytes. Raises ValueError for other sizes, or if not `ready`."""
        if not self.ready:
            raise ValueError("cannot send: one transfer at a time, and only while the mailbox is linked")
        self._out.load(message)
        self.outcome, self._waits_s = None, now
        if self.state == "up" and self._access is None:
            if now - self._polled_s > self.timing.poll_s:  # the target may have booted since the last poll
                self.wake(now)
            else:
                self._write(now)

    def wake(self, now: float) -> None:
        """Poll now, because there is a message to send or the alert line is asserted."""
        self.due_s, self._active_s = min(self.due_s, now), now
        self._pause_s = 0.0

    def next(self, now: float) -> Access | None:
        """Return the access to make, or None until `due_s`."""
        if self._access is None and now >= self.due_s:
            self._access, self._moved = POLL, False
            if self._heard_s is None:
                self._heard_s = self._waits_s = now
        return self._access

    def done(self, now: float, data: bytes = b"") -> bytes | None:
        """Note that the access succeeded and read `data`. Return the message that it completed, or None."""
        access, self._access = self._access, None
        if access is None or len(data) != access.size:
            self._reject("length")
            self._fail(now)
            return None
        self._heard(now)
        if access.size > POLL.size:
            return self._taken(now, data)
        if access.size:
            self._polled(now, data[0], data[1])
        else:
            self._dirty, self._wrote_s = False, now
            self._rest(now)
        return None

    def _heard(self, now: float) -> None:
        self._heard_s = now
        if self.state == "absent":
            self.state, self._waits_s = ("up" if self._linked else "linking"), now

    def failed(self, now: float) -> None:
        """Note that the access was not acknowledged or failed in another way."""
        self.nacks += 1
        self._access = None
        self._fail(now)

    def _fail(self, now: float) -> None:
        self._moved = False
        if self._heard_s is not None and now - self._heard_s >= self.timing.stall_s:
            self.state = "absent"
        self._check_stall(now)
        self._rest(now)

    def _polled(self, now: float, ctl: int, size: int) -> None:
        ack = int(ctl & ACK != 0)
        if not self._epoch or ctl & EPOCH != self._epoch or (self._linked and not self._out.in_step(ack)):
            return self._out_of_step(now, ctl & (ACK | EPOCH))
        self._seen, self._polled_s = None, now
        if not self._linked:
            self._link_up(now)
        if self._out.take_ack(ack):
            self._progress(now)
            self._waits_s = now
            if not self._out.busy:
                self.outcome = "sent"
        self._check_stall(now)
        if self._linked and self.inbox.is_new(ctl, size):
            # Read ctl and n again with the data, so that a bit error on the wire cannot duplicate a message.
            self._access, self._seen = Access(TARGET_CTL, size + POLL.size), _segment(ctl, size)
            return None
        if self._linked and size > SEGMENT_BYTES:
            self._reject("length")
        return self._write(now, awaited=size > 0)

    def _out_of_step(self, now: float, seen: int) -> None:
        """Handle another epoch than ours or an impossible bit. Reset the link only if it reads so twice."""
        before, self._seen = self._seen, seen
        if self._linked and seen != before:
            self._access = POLL
            return None
        if self._linked or not self._epoch:
            self.resets += self._linked
            self._begin_link(now, seen & EPOCH, "reset")
        elif seen != before or now - self._wrote_s >= self.timing.resend_s:
            self._dirty = True
        if now - self._waits_s >= self.timing.stall_s:
            self.state = "stalled"
            self._reject("unserved")
        return self._write(now)

    def _reject(self, reason: str) -> None:
        rejected = self.inbox.rejected
        rejected[reason] = rejected.get(reason, 0) + 1

    def _begin_link(self, now: float, seen: int, reason: str) -> None:
        if self._out.reset(drop=reason == "stalled"):
            self.outcome = reason
        self.inbox.reset()
        self._epoch = self._epoch % EPOCH + 1
        if self._epoch == seen:
            self._epoch = seen % EPOCH + 1
        self._linked, self._dirty = False, True
        self._waits_s = now
        if self.state != "absent":
            self.state = "stalled" if reason == "stalled" else "linking"

    def _link_up(self, now: float) -> None:
        self._linked, self._waits_s = True, now
        self.links += 1
        self._progress(now)

    def _progress(self, now: float) -> None:
        self._moved, self._active_s, self.state = True, now, "up"

    def _check_stall(self, now: float) -> None:
        """Begin a new epoch if a transfer stalls, so that a target that recovers does not deliver it late."""
        if self._out.busy and self._linked and now - self._waits_s >= self.timing.stall_s:
            self._begin_link(now, self._epoch, "stalled")

    def _taken(self, now: float, data: bytes) -> bytes | None:
        message = None
        if _segment(data[0], data[1]) == self._seen:
            message = self.inbox.take(data[0], data[2:])
            self._dirty = True
            self._progress(now)
        else:
            self._reject("torn")
        self._write(now)
        return message

    def _write(self, now: float, awaited: bool = False) -> None:
        """Write a segment or an acknowledgement if one is due. `awaited`: the target still waits for ours."""
        if self._linked and self._out.place():
            self._dirty = self._moved = True
        elif (self._out.placed or awaited) and now - self._wrote_s >= self.timing.resend_s:
            self._dirty = True
        if not self._dirty:
            return self._rest(now)
        flags, data = self._out.segment()
        ctl = flags | (ACK if self.inbox.ack else 0) | self._epoch
        self._access = Access(DATA_END - len(data), data=data + bytes((len(data), ctl)))
        return None

    def _rest(self, now: float) -> None:
        self._pause_s = self._next_pause(now)
        self.due_s = now + self._pause_s

    def _next_pause(self, now: float) -> float:
        timing = self.timing
        if self.state in ("absent", "stalled"):
            return timing.rest_s
        if self._moved:
            return 0.0
        if self._out.busy or not self._linked or now - self._active_s < _ACTIVE_S:
            return min(timing.poll_s, max(2 * self._pause_s, timing.poll_s / 8))
        return self.idle_s
