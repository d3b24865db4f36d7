"""The CRC-16, by its known values."""

import pytest

from bridges.protocols.crc16 import crc16


@pytest.mark.parametrize(("start", "value"), [(0, 0xBB3D), (0xFFFF, 0x4B37)])  # CRC-16/ARC, CRC-16/MODBUS
def test_the_check_values_of_the_catalogues(start: int, value: int) -> None:
    assert crc16(b"123456789", start) == value
