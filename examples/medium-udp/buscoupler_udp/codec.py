"""A message and its CRC-32 in one datagram. Pure."""

from zlib import crc32

from bus.wire.envelope import message_bytes

CRC_BYTES = 4


def encode(message: bytes) -> bytes:
    """Return the datagram of a message."""
    return message + crc32(message).to_bytes(CRC_BYTES, "big")


def decode(datagram: bytes) -> bytes:
    """Return the message in a datagram. Raises ValueError, with the reason in a word, for anything else."""
    message, crc = datagram[:-CRC_BYTES], datagram[-CRC_BYTES:]
    if crc32(message).to_bytes(CRC_BYTES, "big") != crc:
        raise ValueError("crc")
    if not message or message_bytes(message) != len(message):
        raise ValueError("malformed")
    return message
