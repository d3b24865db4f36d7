"""Garbage for a TMQ client: what is no packet, and packets that make no sense."""

import random

from bus.tmq.wire import pack_address
from bus.wire.frame import pack

TYPES = (0x02, 0x05, 0x0D, 0x10, 0x45, 0x46, 0x4F)


def garbage(chance: random.Random) -> bytes:
    """Return random bytes, or a packet with random addresses, random data, or a damaged byte."""
    kind = chance.randrange(4)
    if not kind:
        return chance.randbytes(chance.randrange(80))
    type = chance.choice((*TYPES, chance.randrange(256)))
    tokens = [chance.choice((1, 1, 2)) for _ in range(chance.randrange(3))]
    # Nobody listens there.
    addresses = [pack_address(("127.0.0.1", chance.randrange(1, 9))) for _ in range(3)]
    data = b"".join(addresses) if kind == 1 else chance.randbytes(8 * chance.randrange(8))
    packet = bytearray(pack(type, tokens, data))
    if kind == 2:
        packet[chance.randrange(len(packet))] = chance.randrange(256)
    return bytes(packet)
