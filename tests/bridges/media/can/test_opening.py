"""Adapters on serial lines that take nothing: opening them ends."""

import os
import pty
import tty
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("can")
pytest.importorskip("serial")

from bridges.media.can import opening
from bridges.media.can.library import open_bus
from bridges.media.can.port import shut_down


@pytest.fixture
def line() -> Iterator[tuple[int, str]]:
    """A pty whose other end is a descriptor."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    yield ours, os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


def fill(name: str) -> None:
    """Write to a line until it takes nothing more."""
    end = os.open(name, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        while True:
            os.write(end, b"x")
    except BlockingIOError:
        os.close(end)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(
    ("interface", "settings"),
    [("slcan", {"sleep_after_open": 0, "bitrate": 500_000}), ("robotell", {}), ("seeedstudio", {})],
)
def test_an_adapter_at_a_line_that_takes_nothing_is_a_fault(
    interface: str, settings: dict[str, Any], line: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "WRITE_S", 0.05)
    fill(line[1])
    before = descriptors()
    with pytest.raises(Exception, match=r"(?i)write|init frame"):
        open_bus(interface, channel=line[1], **settings)
    assert descriptors() == before


def test_an_adapter_whose_line_takes_nothing_any_more_is_closed(
    line: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "WRITE_S", 0.05)
    bus = open_bus("slcan", channel=line[1], sleep_after_open=0, bitrate=500_000)
    assert os.read(line[0], 100).endswith(b"O\r")
    fill(line[1])
    before = descriptors()
    shut_down(bus)
    assert descriptors() < before
