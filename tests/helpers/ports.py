"""Ports and CAN channels for tests: no two processes of tests get the same one.

The kernel gives no port of theirs to others.

Each process owns a block of ports as long as it runs: a socket with the block's name in the abstract
namespace tells all others, and ends with the process. The blocks are outside the range from which the kernel
gives ports to whoever connects.
"""

import os
import socket
from collections.abc import Iterator
from functools import cache
from itertools import cycle, islice
from random import SystemRandom
from typing import Final
from uuid import uuid4

PORTS: Final = range(12_000, 32_000)
BLOCK: Final = 250
claims: Final[list[int]] = []
"""Descriptors of the sockets."""
_blocks: Final[list[range]] = []
_KINDS: Final = (socket.SOCK_STREAM, socket.SOCK_DGRAM)


def free_port() -> int:
    """Return a port that is free for TCP and UDP. It comes again only after all others of the block.

    Raises `RuntimeError` if none is free.
    """
    for port in islice(_own(os.getpid()), BLOCK):
        if all(_is_free(port, kind) for kind in _KINDS):
            return port
    raise RuntimeError(f"all {BLOCK} ports of this process are in use")


def free_channel() -> str:
    """Return the name of a CAN channel that nobody has; to YAML "202e8247" would be a number."""
    return f"vcan-{uuid4().hex}"


@cache
def _own(process: int) -> Iterator[int]:
    """Return the ports of the block of this process: one that was forked gets its own."""
    return cycle(claimed())


def claimed() -> range:
    """Return a block that no other process owns. Raises `RuntimeError` if there is none."""
    firsts = list(PORTS[::BLOCK])
    SystemRandom().shuffle(firsts)
    for first in firsts:
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0ports of tests from {first}")
        except OSError:
            claim.close()
        else:
            claims.append(claim.detach())  # the process has it until it ends
            _blocks.append(range(first, first + BLOCK))
            return _blocks[-1]
    raise RuntimeError(f"all {len(firsts)} blocks of ports belong to other processes of tests")


def is_of_others(port: int) -> bool:
    """Return whether a port may be in the block of another process."""
    return port in PORTS and not any(port in block for block in _blocks)


def _is_free(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
