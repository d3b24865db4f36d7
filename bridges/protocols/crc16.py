"""The CRC-16 with the polynomial 0x8005, lowest bit first: of Modbus, and of smart meters. Pure."""

from typing import Final


def _table() -> tuple[int, ...]:
    made = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
        made.append(crc)
    return tuple(made)


_CRCS: Final = _table()


def crc16(data: bytes, start: int) -> int:
    """Return the CRC of data: `start` is 0xFFFF for Modbus, and 0 for CRC-16/ARC."""
    crc = start
    for byte in data:
        crc = crc >> 8 ^ _CRCS[(crc ^ byte) & 0xFF]
    return crc
