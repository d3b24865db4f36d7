"""How long a message is by its own header: for media that pad (docs/wire/can.md)."""

from bus.wire.envelope import ENVELOPE_BYTES, MAGIC
from bus.wire.frame import frame_bytes


def message_bytes(data: bytes | bytearray) -> int:
    """Length of the frame, or envelope and frame, that `data` starts with; 0 if it is neither."""
    start = 0
    if len(data) > ENVELOPE_BYTES and data[0] == MAGIC and data[2] >= 0xF0:
        start = ENVELOPE_BYTES
        announced = int.from_bytes(data[2:4], "big") & 0x0FFF
        if announced != frame_bytes(data, start):
            return 0
    size = frame_bytes(data, start)
    return start + size if size and start + size <= len(data) else 0
