"""Lines of slcan adapters that are no sockets: files, pipes, ttys."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from bridges.media.can.port import BusPort
from bridges.media.can.slcan import BufferedLine, prepare_slcan


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_line_that_is_no_socket_costs_no_descriptor() -> None:
    pytest.importorskip("can")
    read, write = os.pipe()
    line = BufferedLine(SimpleNamespace(fileno=lambda: read))
    bus: Any = SimpleNamespace(fileno=lambda: read, serialPortOrig=line)
    before = descriptors()
    for _ in range(3):
        BusPort(bus, 0, fd=False, switch=False)
        prepare_slcan(bus, None, None)
        bus.serialPortOrig = line
    assert descriptors() == before
    os.close(read)
    os.close(write)
