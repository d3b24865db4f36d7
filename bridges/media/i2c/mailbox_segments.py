"""The I2C mailbox's layout, and both halves of its alternating bit (docs/wire/i2c.md; wire spec section 7).

Shared by both ends. Pure: bytes and time in, values out.
"""

from dataclasses import dataclass
from zlib import crc32

from bus.wire.envelope import MESSAGE_BYTES_MAX
from bus.wire.frame import FRAME_BYTES_MIN

MEMORY_BYTES = 64
DATA_END = 0x1E
"""The controller's data is right-aligned: it ends just before its n; ctl is the last byte of the write."""
CONTROLLER_N, CONTROLLER_CTL = 0x1E, 0x1F
TARGET_CTL, TARGET_N = 0x20, 0x21
SEGMENT_BYTES = 30

SOT, EOT, TOG, ACK, EPOCH = 0x80, 0x40, 0x20, 0x10, 0x0F

CRC_BYTES = 4
RESIDUE = 0x2144DF1C


@dataclass(frozen=True, slots=True)
class Timing:
    """All in seconds. `poll_s`: between polls of an active target, which back off to `idle_s`; `resend_s`: a
    segment is written again; `stall_s`: without progress a transfer is dropped; `rest_s`: between polls then.
    """

    poll_s: float = 0.005
    idle_s: float = 0.05
    resend_s: float = 0.5
    stall_s: float = 2.0
    rest_s: float = 1.0


def seal(message: bytes) -> bytes:
    """`message` (4 to 3084 bytes, or ValueError) and its CRC-32, little-endian: one transfer."""
    if not FRAME_BYTES_MIN <= len(message) <= MESSAGE_BYTES_MAX:
        raise ValueError(
            f"an I2C message has {FRAME_BYTES_MIN} to {MESSAGE_BYTES_MAX} bytes, not {len(message)}"
        )
    return message + crc32(message).to_bytes(CRC_BYTES, "little")


class Outbox:
    """The sending half: one transfer at a time, a new segment only when the last one was taken."""

    __slots__ = ("_position", "_transfer", "placed", "toggle")

    def __init__(self) -> None:
        self._transfer, self._position = b"", 0
        self.placed, self.toggle = False, 0

    @property
    def busy(self) -> bool:
        """Whether a transfer is in flight."""
        return bool(self._transfer)

    def load(self, message: bytes) -> None:
        """Begin a transfer. ValueError for a message that can never be sent."""
        self._transfer, self._position = seal(message), 0

    def reset(self, drop: bool = False) -> bool:
        """A new epoch: both bits 0. Whether a transfer was lost; one not begun yet stays, unless `drop`."""
        lost = self.busy and (drop or self.placed or self._position > 0)
        if lost:
            self._transfer = b""
        self.placed, self.toggle = False, 0
        return lost

    def in_step(self, ack: int) -> bool:
        """Whether the other side's `ack` (0 or 1) can be right: it differs only while a segment is up."""
        return self.placed or ack == self.toggle

    def take_ack(self, ack: int) -> bool:
        """Note the `ack` of the other side; return whether it took our segment."""
        if not self.placed or ack != self.toggle:
            return False
        self._position += SEGMENT_BYTES
        self.placed = False
        if self._position >= len(self._transfer):
            self._transfer = b""
        return True

    def place(self) -> bool:
        """Expose the next segment, if the last one was taken; return whether there was one."""
        if self.placed or not self._transfer:
            return False
        self.toggle ^= 1
        self.placed = True
        return True

    def segment(self) -> tuple[int, bytes]:
        """Return flags (SOT, EOT, TOG) and data for the mailbox now; no data if no segment is placed."""
        flags = TOG if self.toggle else 0
        if not self.placed:
            return flags, b""
        end = self._position + SEGMENT_BYTES
        flags |= (0 if self._position else SOT) | (EOT if end >= len(self._transfer) else 0)
        return flags, self._transfer[self._position : end]


class Inbox:
    """Segments of the other side to messages; holds one transfer at most.

    `rejected` counts transfers that gave no message: `orphan` (goes on without a start), `unfinished` (a new
    one began), `oversize`, `short`, `crc`, `reset` (the other side or the link began anew).
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

    def reset(self) -> None:
        """Begin a new epoch."""
        if self._open:
            self._reject("reset")
        self._skipping, self.ack = False, 0

    def is_new(self, ctl: int, size: int) -> bool:
        """Return whether the other side's `ctl` and n announce a segment that was not taken yet."""
        return 1 <= size <= SEGMENT_BYTES and (ctl & TOG != 0) != self.ack

    def take(self, ctl: int, data: bytes) -> bytes | None:
        """Take a new segment; return the message that it completes, or None."""
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
        """Skip the rest of a transfer that was refused (counted there), or whose start was missed."""
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
