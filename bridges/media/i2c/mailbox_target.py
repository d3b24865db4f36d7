"""A target's end of the I2C mailbox, on 64 bytes of memory (docs/wire/i2c.md; wire spec section 7)."""

from collections import deque

from bridges.media.i2c.mailbox_segments import (
    ACK,
    CONTROLLER_CTL,
    CONTROLLER_N,
    DATA_END,
    EPOCH,
    MEMORY_BYTES,
    TARGET_CTL,
    TARGET_N,
    Inbox,
    Outbox,
    Timing,
)
from bus.wire.envelope import MESSAGE_BYTES_MAX
from bus.wire.frame import FRAME_BYTES_MIN


class Target:
    """A target's end, on 64 bytes of `memory` that the controller reads and writes.

    Call `poll` after each write of the controller, and from time to time. Or call `written`, which also puts
    the bytes into `memory`. If the real memory is elsewhere (i2c-stub), copy its bytes 00 to 1F to `memory`,
    call `poll`, and write `changes()` back. `sent`, `dropped` and `queued` count messages of this end.
    `pending` is the alert line. Never raises for bad data from the wire.
    """

    def __init__(
        self,
        memory: bytearray | None = None,
        message_bytes: int = MESSAGE_BYTES_MAX,
        queue_bytes: int = 64 * 1024,
        timing: Timing | None = None,
    ) -> None:
        self.memory = bytearray(MEMORY_BYTES) if memory is None else memory
        self.timing = timing or Timing()
        self.queue_bytes = queue_bytes
        self.offered = self.sent = 0
        self.dropped: dict[str, int] = {}
        self.inbox, self._out = Inbox(message_bytes), Outbox()
        self._queue: deque[bytes] = deque()
        self._changes: list[tuple[int, bytes]] = []
        self.boot()

    @property
    def rejected(self) -> dict[str, int]:
        """Counts of the controller's transfers that gave no message, by reason: see `Inbox`."""
        return self.inbox.rejected

    @property
    def queued(self) -> int:
        """The number of messages that wait or are in flight: offered = sent + dropped + queued."""
        return len(self._queue) + self._out.busy

    @property
    def pending(self) -> bool:
        """Whether the controller should poll, because this end has just booted or has exposed a segment."""
        return not self.epoch or self._out.placed

    def boot(self, reason: str = "reset") -> None:
        """Reset this end as a power-up does: clear the memory, set epoch 0, drop all messages."""
        self._drop(reason, self.queued)
        self._queue.clear()
        self._queued_bytes = 0
        self._out.reset()
        self.inbox.reset()
        self.epoch = self._epoch_before = 0
        self._waits_s = 0.0
        self.memory[:] = bytes(MEMORY_BYTES)
        self._changes = [(CONTROLLER_N, bytes(2)), (TARGET_CTL, bytes(2))]

    def send(self, message: bytes) -> bool:
        """Queue a message. Return False and count a drop if its size is illegal or the queue is full."""
        self.offered += 1
        if len(message) < FRAME_BYTES_MIN:
            return self._drop("short" if message else "empty")
        if len(message) > MESSAGE_BYTES_MAX:
            return self._drop("oversize")
        if self._queued_bytes + len(message) > self.queue_bytes:
            return self._drop("queue full")
        self._queue.append(message)
        self._queued_bytes += len(message)
        return True

    def written(self, now: float, register: int, data: bytes) -> list[bytes]:
        """Note that the controller wrote `data` at `register`. Return the result of `poll(now)`."""
        self.put(register, data)
        return self.poll(now)

    def put(self, register: int, data: bytes) -> None:
        """Copy the bytes that the controller wrote into `memory`, except those in the target's own part."""
        taken = data[: max(0, TARGET_CTL - register)]
        self.memory[register : register + len(taken)] = taken

    def poll(self, now: float) -> list[bytes]:
        """Take a new segment from the memory and expose our next one. Return the completed messages."""
        ctl, size = self.memory[CONTROLLER_CTL], self.memory[CONTROLLER_N]
        found: list[bytes] = []
        if not size and 0 < ctl <= EPOCH and ctl != self._epoch_before:
            self._link(ctl)
        if self.epoch and ctl & EPOCH == self.epoch:
            self._go_on(now, int(ctl & ACK != 0))
            if self.epoch and self.inbox.is_new(ctl, size):
                message = self.inbox.take(ctl, bytes(self.memory[DATA_END - size : DATA_END]))
                found = [] if message is None else [message]
        if self._out.busy and now - self._waits_s >= self.timing.stall_s:
            self._ask_for_epoch("stalled")
        self._put_up()
        return found

    def changes(self) -> list[tuple[int, bytes]]:
        """Return and clear the changes (register, data) to write, in this order, to a memory elsewhere."""
        changes, self._changes = self._changes, []
        return changes

    def _link(self, epoch: int) -> None:
        self.epoch = self._epoch_before = epoch
        self._reset("reset")

    def _reset(self, reason: str) -> None:
        if self._out.reset():
            self._drop(reason)
        self.inbox.reset()

    def _go_on(self, now: float, ack: int) -> None:
        if not self._out.in_step(ack):
            return self._ask_for_epoch("reset")
        if self._out.take_ack(ack):
            self._waits_s = now
            self.sent += not self._out.busy
        if not self._out.busy and self._queue:
            self._load(now)
        self._out.place()
        return None

    def _ask_for_epoch(self, reason: str) -> None:
        """Set epoch 0, as after a boot, so that the controller begins another epoch than the last."""
        self._reset(reason)
        self.epoch = 0

    def _load(self, now: float) -> None:
        message = self._queue.popleft()
        self._queued_bytes -= len(message)
        self._out.load(message)
        self._waits_s = now

    def _put_up(self) -> None:
        """Expose our segment. Data and n come first and ctl last, so that no partial change is seen."""
        flags, data = self._out.segment()
        ctl = flags | (ACK if self.inbox.ack else 0) | self.epoch
        self._put(TARGET_N, bytes((len(data),)) + data)
        self._put(TARGET_CTL, bytes((ctl,)))

    def _put(self, register: int, data: bytes) -> None:
        if self.memory[register : register + len(data)] != data:
            self.memory[register : register + len(data)] = data
            self._changes.append((register, data))

    def _drop(self, reason: str, count: int = 1) -> bool:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count
        return False
