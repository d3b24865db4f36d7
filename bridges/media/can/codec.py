"""CAN framing: Cyphal/CAN v1 message transfers, classic and FD (docs/wire/can.md; wire spec section 5).

The bytes are those of the Cyphal specification, section 4.2. Without I/O: time is an argument, in seconds.
"""

from binascii import crc_hqx
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from bridges.items import EXTENDED
from bridges.media.medium import SEAL_BYTES
from bridges.media.subject import SUBJECT_MAX
from bus.wire.envelope import MESSAGE_BYTES_MAX, message_bytes

PRIORITY_NOMINAL = 4
SUBJECT_DEFAULT = 0x1234
NODE_MAX = 127

WIDTH, FD_WIDTH = 7, 63
"""The bytes of a transfer in a frame, beside its tail byte."""
SOT, EOT, TOGGLE, TID = 0x80, 0x40, 0x20, 0x1F

GAP_S = 1.0
"""The longest time between two frames of a transfer, in seconds."""
REPEAT_S = 2.0
"""A transfer with the transfer-id and content of the last accepted one is a duplicate within this time.

In seconds. The transfer-id alone is not enough: a restarted node uses the same one by chance, 1 time in 32.
"""

SERVICE, ANONYMOUS, RESERVED = 1 << 25, 1 << 24, 1 << 23 | 1 << 7
_FIXED = 0b11 << 21
_CRC_START = 0xFFFF
_CRC_BYTES = 2
_BUFFER_BYTES_MAX = MESSAGE_BYTES_MAX + SEAL_BYTES + _CRC_BYTES + 63
_SLOTS_MAX = 1024
_KEY: Final = SUBJECT_MAX << 8 | NODE_MAX

Payload = bytes | bytearray
Opener = Callable[[Payload], bytes | None]
"""A reader of the payload of a message of one subject; it returns None if that is no message."""

FD_LENGTHS = (*range(9), 12, 16, 20, 24, 32, 48, 64)
_FD_ROUNDED = tuple(next(legal for legal in FD_LENGTHS if legal >= size) for size in range(65))


def can_id(subject: int, node: int, priority: int = PRIORITY_NOMINAL) -> int:
    """Return the 29-bit identifier of a message frame; `subject` 0..8191, `node` 0..127, `priority` 0..7."""
    return priority << 26 | _FIXED | subject << 8 | node


def subject_mask(subject: int) -> tuple[int, int]:
    """Return the identifier of a subject's message frames, and a mask of the bits that all of them share."""
    return EXTENDED | subject << 8, EXTENDED | SUBJECT_MAX << 8 | SERVICE | RESERVED


def segment(payload: bytes, transfer_id: int, fd: bool = False) -> list[bytes]:
    """Return the data fields of the frames of one transfer. `transfer_id` is taken modulo 32."""
    width, tid = (FD_WIDTH if fd else WIDTH), transfer_id & TID
    padded = payload + bytes(padding(len(payload))) if fd else payload
    if len(payload) <= width:
        return [padded + _TAILS[SOT | EOT | TOGGLE | tid]]
    return _cut(padded + crc_hqx(padded, _CRC_START).to_bytes(_CRC_BYTES, "big"), width, tid)


def padding(size: int) -> int:
    """Return how many zeros, 0 to 15, follow a payload of `size` bytes on CAN FD."""
    rest = size if size <= 63 else (size + _CRC_BYTES) % 63
    return _FD_ROUNDED[rest + 1] - rest - 1 if rest else 0


_TAILS = tuple(bytes((tail,)) for tail in range(256))


def _cut(sealed: bytes, width: int, tid: int) -> list[bytes]:
    tails = (_TAILS[TOGGLE | tid], _TAILS[tid])
    starts = range(0, len(sealed), width)
    frames = [sealed[start : start + width] + tails[index & 1] for index, start in enumerate(starts)]
    frames[0] = frames[0][:-1] + _TAILS[SOT | TOGGLE | tid]
    frames[-1] = frames[-1][:-1] + _TAILS[frames[-1][-1] | EOT]
    return frames


def transfer_seconds(size: int, bitrate: int, data_bitrate: int | None = None) -> float:
    """Return the longest bus time of a message of `size` bytes, in seconds. Rates are those of a frame."""
    parts = segment(bytes(size), 0, data_bitrate is not None)
    return sum(frame_seconds(len(data), bitrate, data_bitrate) for data in parts)


def frame_seconds(
    size: int, bitrate: int, data_bitrate: int | None = None, is_extended: bool = True
) -> float:
    """Return the longest bus time of a frame with `size` bytes of data, in seconds.

    Uses CAN FD frames if there is a `data_bitrate`. Rates are in bits a second. Assumes as many stuff bits as
    possible; includes the space between frames.
    """
    if data_bitrate is None:
        return ((80 if is_extended else 55) + 10 * size) / bitrate
    return (57 if is_extended else 34) / bitrate + _fd_data_bits(size) / data_bitrate


def _fd_data_bits(count: int) -> int:
    """Return how many bits have the data rate: flags, length, data, stuff count, CRC, stuff bits."""
    stuffable = 5 + 8 * count
    return stuffable + stuffable // 4 + 4 + (17 + 6 if count <= 16 else 21 + 7)


class _Slot:
    """The state of one subject of one node: the transfer being collected, and the last accepted transfer."""

    __slots__ = ("accepted", "accepted_s", "buffer", "heard_s", "message", "open", "opened", "tid", "toggle")

    def __init__(self, opened: Opener) -> None:
        self.buffer, self.opened = bytearray(), opened
        self.open = False
        self.tid = self.toggle = self.accepted = 0
        self.heard_s = 0.0
        self.accepted_s = 0.0
        self.message = b""


class Reassembler:
    """A collector of the transfers of some subjects, for 1024 of their source nodes, at most 6269 bytes each.

    `subject` is that of TMQ: its messages end where `size_of` says by their header, and `more_bytes` stand
    behind each. `others` are more subjects, each with what reads its payloads.
    `rejected` counts, by reason, frames and transfers that gave no message:
    `foreign` (another subject, a service), `anonymous`, `empty`, `toggle`, `repeat` (a doubled frame),
    `duplicate` (a doubled transfer), `unfinished`, `orphan`, `gap`, `order`, `width`, `oversize`, `crc`,
    `malformed` (a transfer with correct CRC, but no message in it).
    """

    __slots__ = ("_late_s", "_more_bytes", "_openers", "_size_of", "_slots", "rejected", "subjects")

    def __init__(
        self,
        subject: int = SUBJECT_DEFAULT,
        rejected: dict[str, int] | None = None,
        more_bytes: int = 0,
        others: Mapping[int, Opener] = MappingProxyType({}),
        size_of: Callable[[Payload], int] = message_bytes,
    ) -> None:
        self._more_bytes, self._size_of, self._late_s = more_bytes, size_of, 0.0
        self._openers: dict[int, Opener] = {**others, subject: self._whole}
        self.subjects = tuple(self._openers)
        self.rejected: dict[str, int] = {} if rejected is None else rejected
        self._slots: dict[int, _Slot] = {}

    def feed(self, now: float, identifier: int, data: bytes | bytearray, late_s: float = 0.0) -> bytes | None:
        """Return the message that this frame completes, or None. `now` is a monotonic time in seconds.

        The frame may have waited for `late_s` until it was read: a program that stood still has no gap.
        """
        self._late_s = late_s
        if identifier & (SERVICE | RESERVED) or identifier >> 8 & SUBJECT_MAX not in self._openers:
            return self._reject("foreign")
        if identifier & ANONYMOUS:
            return self._reject("anonymous")
        if not data:
            return self._reject("empty")
        slot = self._slots.get(identifier & _KEY) or self._new_slot(identifier & _KEY)
        return self._start(slot, now, data) if data[-1] & SOT else self._go_on(slot, now, data)

    def _new_slot(self, key: int) -> _Slot:
        if len(self._slots) >= _SLOTS_MAX:
            del self._slots[next(iter(self._slots))]
        slot = self._slots[key] = _Slot(self._openers[key >> 8])
        return slot

    def _whole(self, payload: Payload) -> bytes | None:
        """Remove the padding, using the length in the message's own header."""
        size = self._size_of(payload)
        return bytes(payload[: size + self._more_bytes]) if size else None

    def _start(self, slot: _Slot, now: float, data: bytes | bytearray) -> bytes | None:
        tail = data[-1]
        if not tail & TOGGLE:  # UAVCAN v0, another protocol on the same bus, starts its transfers with 0
            return self._reject("toggle")
        if slot.open:
            if slot.tid == tail & TID and slot.buffer == data[:-1]:
                return self._reject("repeat")
            self._abandon(slot, "unfinished")
        if not tail & EOT and len(data) < 8:
            return self._reject("width")
        slot.tid = tail & TID
        if tail & EOT:
            return self._accept(slot, now, data[:-1])
        slot.buffer[:] = data[:-1]
        slot.open, slot.toggle, slot.heard_s = True, TOGGLE, now
        return None

    def _go_on(self, slot: _Slot, now: float, data: bytes | bytearray) -> bytes | None:
        tail = data[-1]
        if not slot.open:
            return self._reject("orphan")
        if now - slot.heard_s - self._late_s > GAP_S:
            return self._abandon(slot, "gap")
        if tail & TID != slot.tid:
            return self._abandon(slot, "order")
        if tail & TOGGLE == slot.toggle:
            return self._reject("repeat")
        return self._take(slot, now, data, tail)

    def _take(self, slot: _Slot, now: float, data: bytes | bytearray, tail: int) -> bytes | None:
        if not tail & EOT and len(data) < 8:
            return self._abandon(slot, "width")
        buffer = slot.buffer
        buffer += data[:-1]
        if len(buffer) > _BUFFER_BYTES_MAX:
            return self._abandon(slot, "oversize")
        slot.toggle ^= TOGGLE
        slot.heard_s = now
        if not tail & EOT:
            return None
        if crc_hqx(buffer, _CRC_START):
            return self._abandon(slot, "crc")
        slot.open = False
        return self._accept(slot, now, buffer[:-_CRC_BYTES])

    def _accept(self, slot: _Slot, now: float, payload: bytes | bytearray) -> bytes | None:
        message = slot.opened(payload)
        if message is None:
            return self._reject("malformed")
        since_s = now - slot.accepted_s - self._late_s
        if slot.tid == slot.accepted and since_s <= REPEAT_S and message == slot.message:
            return self._reject("duplicate")
        slot.accepted, slot.accepted_s, slot.message = slot.tid, now, message
        return message

    def _abandon(self, slot: _Slot, reason: str) -> bytes | None:
        slot.open = False
        slot.buffer.clear()
        return self._reject(reason)

    def _reject(self, reason: str) -> bytes | None:
        self.rejected[reason] = self.rejected.get(reason, 0) + 1
        return None
