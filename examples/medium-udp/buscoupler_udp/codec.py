"""The format of a datagram: a message and its CRC-32. No I/O."""

from zlib import crc32

from bus.wire.envelope import message_bytes

CRC_BYTES = 4


def encode(message: bytes) -> bytes:
    """Return the datagram of a message."""
    return message + crc32(message).to_bytes(CRC_BYTES, "big")


def decode(datagram: bytes) -> bytes:
    """Return the message in a datagram. Raises ValueError with the reason of the ledger."""
    message, crc = datagram[:-CRC_BYTES], datagram[-CRC_BYTES:]
    if crc32(message).to_bytes(CRC_BYTES, "big") != crc:
        raise ValueError("crc")
    if not message or message_bytes(message) != len(message):
        raise ValueError("malformed")
    return message
