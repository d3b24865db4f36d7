"""`buscoupler recv ENDPOINT`: print the messages of a bus or any medium, one a line."""

import argparse
import asyncio
import json
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from math import inf

from appliance.commandline.arguments import above_zero, argument
from appliance.commandline.names import names_argument, running
from appliance.commands.traffic import Sequences
from appliance.probe.endpoint import endpoint_arguments, link_of
from appliance.probe.station import Station
from appliance.probe.words import frame_in, line, record, with_hints
from appliance.process.running import run_loop
from bus.hub import Pipe, arrived_ns
from bus.names import Names
from bus.text import amount
from bus.wire.batch import Batch
from bus.wire.notation import names_in
from bus.wire.pattern import Pattern

log = logging.getLogger("buscoupler")

_AT_ONCE = 256  # messages printed in one write
Timed = tuple[bytes, float]
"""A message, and when it came, in seconds since 1970."""


def arguments(parser: argparse.ArgumentParser) -> None:
    endpoint_arguments(parser, count="stop after N messages")
    parser.add_argument(
        "--pattern", action="append", default=[], type=argument(names_in), metavar="PATTERN",
        help="show only frames that start with it, like fridge/temp (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--timeout",
        type=above_zero,
        metavar="S",
        help="stop after S seconds; exit with 1 if --count was not reached",
    )
    names_argument(parser, "show tokens by these names, beside those that running gateways know")
    parser.add_argument("--gaps", action="store_true", help="check the sequence numbers that `traffic` sends")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print one JSON object a line")
    how.add_argument("--raw", action="store_true", help="print the bytes unchanged, a newline after each")


def run(options: argparse.Namespace) -> int:
    return run_loop(recv(options))


async def recv(options: argparse.Namespace) -> int:
    """Print messages. Return 0, or 1 if too few came before the timeout, or `--gaps` found gaps.

    A signal is the normal end, unless there is a `--count` or `--timeout` that was not reached.
    """
    wanted = _wanted(options)
    show, sequences = _show(options), Sequences()
    async with Station(link_of(options), announce=options.listen) as station:
        got = await _hear(station, options, wanted, show, sequences)
    rejected = station.leaf.totals().rejected
    if rejected:
        log.info("%s: rejected messages: %s", station.link.name, with_hints(rejected))
    for text in sequences.report():
        print(text, file=sys.stderr)
    if station.stops and (options.timeout or got < (options.count or 0)):
        return station.cut_short()
    if not station.stops and got < (options.count or 1):
        return station.complain("recv", f"{amount(got, 'message')} within {options.timeout:g} s")
    return int(sequences.broken())


async def _hear(
    station: Station,
    options: argparse.Namespace,
    wanted: Callable[[bytes], bool],
    show: Callable[[Sequence[Timed]], None],
    sequences: Sequences,
) -> int:
    """Show messages until `--count` or the timeout is reached. Return how many were shown."""
    heard, got, clock = station.leaf.heard, 0, _Clock()
    station.leaf.tap(clock.note)
    loop = asyncio.get_running_loop()
    end_s = loop.time() + (inf if options.timeout is None else options.timeout)
    while (left := (options.count or sys.maxsize) - got) > 0:
        if not await station.until(lambda: heard, end_s - loop.time()):
            break
        taken = [(heard.popleft(), clock.times_s.popleft()) for _ in range(len(heard))]
        messages = [one for one in taken if wanted(one[0])][:left]
        got += len(messages)
        for start in range(0, len(messages), _AT_ONCE):
            show(messages[start : start + _AT_ONCE])
        for frame in (frame_in(message) for message, _ in messages) if options.gaps else ():
            sequences.note(frame.data if frame else b"")
    return got


def _wanted(options: argparse.Namespace) -> Callable[[bytes], bool]:
    patterns = [Pattern(*names) for names in options.pattern]

    def wanted(message: bytes) -> bool:
        frame = frame_in(message)
        return frame is not None and any(pattern.matches(frame.tokens) for pattern in patterns)

    return wanted if patterns else lambda message: True


class _Clock:
    """The times at which the messages came that are not shown yet, in seconds since 1970."""

    def __init__(self) -> None:
        self.times_s = deque[float]()

    def note(self, batch: Batch, pipe: Pipe | None) -> None:
        """Note when a batch came: by the kernel or the adapter where they tell, else now."""
        self.times_s.extend(ns // 1000 / 1e6 for ns in arrived_ns(batch, pipe, time.time_ns()))


def _show(options: argparse.Namespace) -> Callable[[Sequence[Timed]], None]:
    if options.raw:
        return _show_bytes
    asked = (name for names in options.pattern for name in names)
    names = Names([*options.names, *asked, *options.endpoint.names, *running()])
    make = (lambda *message: json.dumps(record(*message))) if options.json else line
    hint = _Hint(names, sys.stdout.isatty() and not options.json)

    def show(messages: Sequence[Timed]) -> None:
        print("\n".join(make(message, names, at_s) for message, at_s in messages), flush=True)
        hint.look(messages)

    return show


class _Hint:
    """A hint, printed once on a terminal: how a token without a name gets one."""

    def __init__(self, names: Names, wanted: bool) -> None:
        self._names, self._wanted = names, wanted

    def look(self, messages: Sequence[Timed]) -> None:
        """Print the hint if a message has a token without a name."""
        frames = (frame_in(message) for message, _ in messages) if self._wanted else ()
        if any(self._names.get(token) is None for frame in frames if frame for token in frame.tokens):
            self._wanted = False
            print("buscoupler recv: a token is the hash of a name: --names shows the name", file=sys.stderr)


def _show_bytes(messages: Sequence[Timed]) -> None:
    sys.stdout.buffer.write(b"".join(message + b"\n" for message, _ in messages))
    sys.stdout.buffer.flush()
