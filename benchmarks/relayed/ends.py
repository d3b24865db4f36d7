"""Our ends of the lines: a pseudo-terminal, or a socket of CAN frames."""

import os
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.can_pairs import door
from benchmarks.relayed.systems import CHANNEL, LineLoad
from tests.rigs.can_packets import roomy


class End(NamedTuple):
    """Our end of a line: `open()` returns its descriptor, `kind` is that of load.c, `path` the other end."""

    open: Callable[[], int]
    kind: str
    path: str


@contextmanager
def end_of(load: LineLoad, directory: Path) -> Iterator[End]:
    """Yield our end of the line of a load. Open it once the gateway runs."""
    with _terminal() if load.line == "uart" else _channel(directory) as end:
        yield end


@contextmanager
def _terminal() -> Iterator[End]:
    ours, other = os.openpty()
    for end in (ours, other):
        tty.setraw(end)
    try:
        yield End(lambda: ours, "fd", os.ttyname(other))
    finally:
        os.close(ours)
        os.close(other)


@contextmanager
def _channel(directory: Path) -> Iterator[End]:
    with door(directory / CHANNEL) as entrance:
        joined = list[int]()

        def accept() -> int:
            joined.append(roomy(entrance.accept()[0]).detach())
            return joined[0]

        try:
            yield End(accept, "cn", "")
        finally:
            for number in joined:
                os.close(number)
