"""The rules of appliances before opaque messages, frozen: they know frames, and frames in envelopes."""

FRAME_BYTES_MIN, ENVELOPE_BYTES, DATA_BYTES_MAX = 4, 12, 2048


def _is_frame(message: bytes) -> bool:
    if len(message) < FRAME_BYTES_MIN:
        return False
    size = int.from_bytes(message[2:4], "big")
    return size <= DATA_BYTES_MAX and len(message) == FRAME_BYTES_MIN + 4 * message[1] + size


def old_verdict(message: bytes) -> str:
    """Return what an old appliance took a message on a trunk for: `frame`, `enveloped`, or `malformed`."""
    if _is_frame(message):
        return "frame"
    if len(message) < ENVELOPE_BYTES + FRAME_BYTES_MIN or message[0] != 0xE1 or message[2] < 0xF0:
        return "malformed"
    frame, length = message[ENVELOPE_BYTES:], int.from_bytes(message[2:4], "big") & 0x0FFF
    legal = message[1] <= 15 and length == len(frame) and _is_frame(frame)
    return "enveloped" if legal else "malformed"
