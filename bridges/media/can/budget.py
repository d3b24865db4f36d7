"""The time that a Cyphal transfer takes on a CAN bus at worst (docs/wire/can.md).

Every stuffable bit is stuffed, identifiers have 29 bits, and the space between frames is included.
"""

_FD_SIZES = (*range(9), 12, 16, 20, 24, 32, 48, 64)


def transfer_seconds(size: int, bitrate: int, data_bitrate: int | None = None) -> float:
    """Bus time of a message of `size` bytes: in CAN FD frames where a `data_bitrate` is given."""
    if data_bitrate is None:
        return sum(80 + 10 * n for n in _classic(size)) / bitrate
    return sum(57 / bitrate + _fd_data_bits(n) / data_bitrate for n in _fd(size))


def _classic(size: int) -> list[int]:
    """Data bytes of each CAN frame: 7 and the tail byte; CRC-16 when there are several."""
    if size <= 7:
        return [size + 1]
    full, rest = divmod(size + 2, 7)
    return [8] * full + ([rest + 1] if rest else [])


def _fd(size: int) -> list[int]:
    total = size if size <= 63 else size + 2
    full, rest = divmod(total, 63)
    return [64] * full + ([next(n for n in _FD_SIZES if n > rest)] if rest else [])


def _fd_data_bits(count: int) -> int:
    """Bits at the data rate: flags, length, data, stuff bits, stuff count, CRC with fixed stuff bits."""
    stuffable = 5 + 8 * count
    return stuffable + stuffable // 4 + 4 + (17 + 6 if count <= 16 else 21 + 7)
