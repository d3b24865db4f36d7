"""The layout of the I2C mailbox and its alternating-bit protocol (docs/wire/i2c.md; wire spec section 7).

Both ends use it. Pure: functions of bytes and time.
"""

from dataclasses import dataclass
from zlib import crc32

from bus.wire.envelope import MESSAGE_BYTES_MAX
from bus.wire.frame import FRAME_BYTES_MIN

MEMORY_BYTES = 64
DATA_END = 0x1E
"""The end of the controller's data. After it come n and then ctl, the last byte of the write."""
CONTROLLER_N, CONTROLLER_CTL = 0x1E, 0x1F
TARGET_CTL, TARGET_N = 0x20, 0x21
SEGMENT_BYTES = 30

SOT, EOT, TOG, ACK, EPOCH = 0x80, 0x40, 0x20, 0x10, 0x0F

CRC_BYTES = 4
RESIDUE = 0x2144DF1C


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of the mailbox, all in seconds.

    `poll_s`: between polls of an active target. `idle_s`: between polls of an idle target. `resend_s`: until
    a segment is written again. `stall_s`: until a transfer without progress is dropped. `rest_s`: between
    polls of a stalled or absent target.
    """

    poll_s: float = 0.005
    idle_s: float = 0.05
    resend_s: float = 0.5
    stall_s: float = 2.0
    rest_s: float = 1.0


def seal(message: bytes) -> bytes:
    """Return a transfer: 4 to 3084 bytes (else ValueError) and their CRC-32, little-endian."""
    if not FRAME_BYTES_MIN <= len(message) <= MESSAGE_BYTES_MAX:
        raise ValueError(
            f"an I2C message has {FRAME_BYTES_MIN} to {MESSAGE_BYTES_MAX} bytes, not {len(message)}"
        )
    return message + crc32(message).to_bytes(CRC_BYTES, "little")


class Outbox:
    """The sending half: one transfer at a time. It exposes a segment when the last one was acknowledged."""

    __slots__ = ("_position", "_transfer", "placed", "toggle")

    def __init__(self) -> None:
        self._transfer, self._position = b"", 0
        self.placed, self.toggle = False, 0

    @property
    def busy(self) -> bool:
        """Whether a transfer is in flight."""
        return bool(self._transfer)

    def load(self, message: bytes) -> None:
        """Begin a transfer. Raises ValueError for a message of illegal size."""
        self._transfer, self._position = seal(message), 0

    def reset(self, drop: bool = False) -> bool:
        """Begin a new epoch, with both bits 0. Return whether a transfer was lost.

        A transfer of which no segment was sent yet stays, unless `drop` is True.
        """
        lost = self.busy and (drop or self.placed or bool(self._position))
        if lost:
            self._transfer = b""
        self.placed, self.toggle = False, 0
        return lost

    def in_step(self, ack: int) -> bool:
        """Return whether an `ack` (0 or 1) is possible now: `toggle`, unless a segment is placed."""
        return self.placed or ack == self.toggle

    def take_ack(self, ack: int) -> bool:
        """Evaluate the `ack` of the other side. Return whether it acknowledges our segment."""
        if not self.placed or ack != self.toggle:
            return False
        self._position += SEGMENT_BYTES
        self.placed = False
        if self._position >= len(self._transfer):
            self._transfer = b""
        return True

    def place(self) -> bool:
        """Expose the next segment if the last one was acknowledged. Return whether there was one."""
        if self.placed or not self._transfer:
            return False
        self.toggle ^= 1
        self.placed = True
        return True

    def segment(self) -> tuple[int, bytes]:
        """Return current flags (SOT, EOT, TOG) and data; the data is empty if no segment is placed."""
        flags = TOG if self.toggle else 0
        if not self.placed:
            return flags, b""
        end = self._position + SEGMENT_BYTES
        flags |= (0 if self._position else SOT) | (EOT if end >= len(self._transfer) else 0)
        return flags, self._transfer[self._position : end]


class Inbox:
    """The receiving half: it joins segments to messages, and holds at most one transfer.

    `rejected` counts transfers that gave no message: `orphan` (its start is missing), `unfinished` (another
    one began), `oversize`, `short`, `crc`, `reset` (the other side or the link was reset).
    """

    __slots__ = ("_bytes_max", "_open", "_skipping", "_transfer", "ack", "rejected")

    def __init__(
        self, message_bytes: int = MESSAGE_BYTES_MAX, rejected: dict[str, int] | None = None
    ) -> None:
        self.rejected: dict[str, int] = {} if rejected is None else rejected
        self._bytes_max = message_bytes + CRC_BYTES
        self._transfer = bytearray()
        self._open = self._skipping = False
        self.ack = 0

    @property
    def open(self) -> bool:
        """Whether a transfer has begun that is not whole yet."""
        return self._open

    def reset(self) -> None:
        """Begin a new epoch, with the acknowledge bit 0."""
        if self._open:
            self._reject("reset")
        self._skipping, self.ack = False, 0

    def is_new(self, ctl: int, size: int) -> bool:
        """Return whether `ctl` and `size` (n) of the other side announce a segment that was not taken yet."""
        return 1 <= size <= SEGMENT_BYTES and (ctl & TOG != 0) != self.ack

    def take(self, ctl: int, data: bytes) -> bytes | None:
        """Take a new segment and acknowledge it. Return the message that it completes, or None."""
        self.ack ^= 1
        if ctl & SOT:
            self._start()
        elif not self._open:
            return self._pass_over(ctl)
        if len(self._transfer) + len(data) > self._bytes_max:
            self._skipping = not ctl & EOT
            return self._reject("oversize")
        self._transfer += data
        return self._end() if ctl & EOT else None

    def _start(self) -> None:
        if self._open:
            self._reject("unfinished")
        self._open, self._skipping = True, False

    def _pass_over(self, ctl: int) -> bytes | None:
        """Skip the rest of a transfer that was already rejected, or whose start is missing (`orphan`)."""
        skipped, self._skipping = self._skipping, self._skipping and not ctl & EOT
        return self._reject("orphan") if ctl & EOT and not skipped else None

    def _end(self) -> bytes | None:
        if len(self._transfer) < FRAME_BYTES_MIN + CRC_BYTES:
            return self._reject("short")
        if crc32(self._transfer) != RESIDUE:
            return self._reject("crc")
        message = bytes(self._transfer[:-CRC_BYTES])
        self._close()
        return message

    def _reject(self, reason: str) -> bytes | None:
        self.rejected[reason] = self.rejected.get(reason, 0) + 1
        self._close()
        return None

    def _close(self) -> None:
        self._transfer.clear()
        self._open = False
