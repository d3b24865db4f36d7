"""`buscoupler traffic ENDPOINT --rate N`: send numbered test traffic at a given rate to any link."""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from struct import Struct
from typing import Any

from appliance.commandline.arguments import above_zero, argument
from appliance.probe.cars import cars_of, play
from appliance.probe.endpoint import Endpoint, add_timeout, endpoint_arguments, link_of, parse_endpoint
from appliance.probe.live import add_live, cleared
from appliance.probe.pacing import Pacer
from appliance.probe.raw import identifiers_of, raw_endpoint
from appliance.probe.station import MESSAGE_COST_BYTES, Station
from appliance.probe.words import with_hints
from appliance.process.running import run_loop
from bridges.protocols.dbc.plausible import Plausible
from bus.errors import FrameError, LinkError
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MAX, PUB, pack
from bus.wire.notation import pattern_of

HEAD = Struct(">II")  # run and sequence; noise follows
_BATCH_MESSAGES = 512
_BATCH_BYTES = 48 * 1024
_TICK_S = 0.001
_RUNS_MAX = 64
_MISSING_MAX = 65536


def arguments(parser: argparse.ArgumentParser) -> None:
    endpoint_arguments(parser, count="stop after N messages", parse=_parsed)
    parser.add_argument("--rate", type=argument(rate_of), default=100.0, metavar="N[/s]",
                        help="messages a second; 0: as fast as the slowest peer accepts (100)")  # fmt: skip
    parser.add_argument("--size", type=argument(size_of), default=(64, 64), metavar="BYTES[:BYTES]",
                        help=f"bytes of data, {HEAD.size} to {DATA_BYTES_MAX}, or a range (64)")  # fmt: skip
    parser.add_argument("--seconds", type=above_zero, metavar="S", help="stop after S seconds")
    parser.add_argument("--pattern", type=argument(pattern_of), default=pattern_of("traffic"),
                        metavar="PATTERN", help="the pattern, like fridge/temp (traffic)")  # fmt: skip
    parser.add_argument(
        "--seed", type=int, metavar="N", help="repeat the sizes, noise and run number of this seed"
    )
    text = "send the messages of this database, with plausible signals, at their cycle times"
    parser.add_argument("--dbc", action="append", default=[], metavar="FILE", help=text)
    add_timeout(parser)
    add_live(parser)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def rate_of(word: str) -> float:
    """Return the rate in messages a second from `100` or `100/s`. Raises `FrameError`."""
    try:
        rate = float(word.removesuffix("/s"))
    except ValueError:
        rate = -1.0
    if not 0 <= rate < inf:
        raise FrameError(f"{word!r} is not a rate: write 100 or 100/s, or 0 for as fast as possible")
    return rate


def size_of(word: str) -> tuple[int, int]:
    """Return the least and the most bytes of data. Raises `FrameError`."""
    low, _, high = word.partition(":")
    try:
        sizes = int(low), int(high or low)
    except ValueError:
        sizes = 0, 0
    if not HEAD.size <= sizes[0] <= sizes[1] <= DATA_BYTES_MAX:
        raise FrameError(
            f"{word!r} is not a size: write BYTES or BYTES:BYTES, from {HEAD.size} to {DATA_BYTES_MAX}"
        )
    return sizes


class Source:
    """An endless iterator of frames. Their data is run (u32), sequence from 0 (u32), then noise.

    `run` distinguishes the sources on a bus. The same seed gives the same frames.
    """

    def __init__(self, pattern: tuple[int, ...], sizes: tuple[int, int], seed: int | None = None) -> None:
        self._random = random.Random(seed)
        self.run = self._random.getrandbits(32)
        self.made = 0
        self._pattern, self._sizes = pattern, sizes
        self._noise = self._random.randbytes(2 * DATA_BYTES_MAX)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        size = self._random.randint(*self._sizes)
        start = self.made % DATA_BYTES_MAX
        head = HEAD.pack(self.run, self.made & 0xFFFFFFFF)
        self.made += 1
        return pack(PUB, self._pattern, head + self._noise[start : start + size - HEAD.size])

    def batch(self, messages_max: int, bytes_max: int = _BATCH_BYTES) -> list[bytes]:
        """Return up to `messages_max` frames that fit into a device's queue of `bytes_max`."""
        batch: list[bytes] = []
        left = bytes_max
        while len(batch) < min(messages_max, _BATCH_MESSAGES) and left >= FRAME_BYTES_MAX:
            batch.append(next(self))
            left -= len(batch[-1]) + MESSAGE_COST_BYTES
        return batch


class Sequences:
    """A check of the sequence numbers of up to 64 runs, for missing, doubled and disordered ones.

    Counting starts at the lowest number received: at most 65,536 below the first one. A number stays missing
    once 65,536 later ones are missing.
    """

    def __init__(self) -> None:
        self._runs: dict[int, _Run] = {}

    def note(self, data: bytes) -> None:
        """Count the data of one frame. Data that is too short to be from `traffic` is ignored."""
        if len(data) < HEAD.size:
            return
        run, sequence = HEAD.unpack_from(data)
        if run not in self._runs and len(self._runs) < _RUNS_MAX:
            self._runs[run] = _Run(sequence)
        if run in self._runs:
            self._runs[run].note(sequence)

    def broken(self) -> bool:
        return any(run.missing or run.doubled for run in self._runs.values())

    def report(self) -> list[str]:
        return [f"run {number:08x}: {run}" for number, run in self._runs.items()]


class _Run:
    def __init__(self, first: int) -> None:
        self.first = self._next = first
        self.heard = self.missing = self.doubled = self.reordered = 0
        self._holes: dict[int, None] = {}

    def note(self, sequence: int) -> None:
        self.heard += 1
        ahead, before = _steps(self._next, sequence), _steps(sequence, self.first)
        if ahead >= 0:
            self._skip(self._next, ahead)
            self._next = (sequence + 1) & 0xFFFFFFFF
        elif 0 < before <= _MISSING_MAX:
            self._skip((sequence + 1) & 0xFFFFFFFF, before - 1)
            self.first = sequence
            self.reordered += 1
        elif sequence in self._holes:
            del self._holes[sequence]
            self.missing -= 1
            self.reordered += 1
        else:
            self.doubled += 1

    def _skip(self, start: int, count: int) -> None:
        self.missing += count
        for number in range(max(0, count - _MISSING_MAX), count):
            self._holes[(start + number) & 0xFFFFFFFF] = None
        while len(self._holes) > _MISSING_MAX:
            del self._holes[next(iter(self._holes))]

    def __str__(self) -> str:
        return (
            f"{self.heard} received from {self.first} on, {self.missing} missing, {self.doubled} doubled, "
            f"{self.reordered} out of order"
        )


def _steps(start: int, end: int) -> int:
    """Return how far the 32-bit number `end` is after `start`; below 0 if it is before."""
    return (end - start + (1 << 31)) % (1 << 32) - (1 << 31)


def _parsed(word: str) -> Endpoint:
    """Return the endpoint of a word; of a CAN bus also one that is complete for raw frames alone."""
    try:
        return parse_endpoint(word)
    except LinkError:
        with suppress(LinkError):
            return raw_endpoint(word)._replace(word=word)
        raise


def run(options: argparse.Namespace) -> int:
    word = options.endpoint.word
    try:
        options.endpoint = raw_endpoint(word) if options.dbc else parse_endpoint(word)
        cars = cars_of(options.dbc) if options.dbc else None
    except LinkError as error:
        options.fail(str(error))
    return run_loop(traffic(options, cars))


async def traffic(options: argparse.Namespace, cars: Plausible | None = None) -> int:
    """Send test traffic, or the frames of `cars`. Return 0; or 1 if no peer was there in time, or a message
    was dropped.

    A signal is the normal end if there is no `--count` and no `--seconds`.
    """
    sent = cars.identifiers if cars else identifiers_of(options.endpoint, options.pattern)
    await cleared(options, options.endpoint, sent)
    source = Source(options.pattern, options.size, options.seed)
    station = Station(link_of(options, hears=False), options.endpoint.uncounted, options.listen)
    async with station:
        if not await station.peer(options.timeout):
            return station.complain("traffic", f"no peer, device or broker within {options.timeout:g} s")
        if cars is None:
            seconds, late = await _speak(station, source, options)
        else:
            seconds, late = await play(station, cars, options), 0
            source.made = cars.sent
        await station.drain(options.timeout)
    summary = _summary(station, source, seconds, late)
    print(json.dumps(summary) if options.json else _text(summary), flush=True)
    wanted = options.count is not None or options.seconds is not None
    done = source.made >= (options.count or inf) or seconds >= (options.seconds or inf)
    if station.stops and wanted and not done:
        return station.cut_short()
    return int(bool(summary["dropped"]))


async def _speak(station: Station, source: Source, options: argparse.Namespace) -> tuple[float, int]:
    """Send until a limit. Return the seconds that took, and the number of messages that were too late."""
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    end_s = start_s + (options.seconds or inf)
    pacer = Pacer(options.rate, start_s)
    batch_bytes = min(_BATCH_BYTES, station.ahead_bytes)
    left = options.count or sys.maxsize
    while left and not station.stops and (left_s := end_s - loop.time()) > 0:
        if options.rate:
            due = await _due(station, pacer, left_s)
        else:
            due = _BATCH_MESSAGES if await station.room(batch_bytes, left_s) else 0
        if batch := source.batch(min(left, due), batch_bytes):
            station.say(batch)
            left -= len(batch)
            await asyncio.sleep(0)
    return loop.time() - start_s, pacer.late


async def _due(station: Station, pacer: Pacer, limit_s: float) -> int:
    """Wait until the next message is due. Return how many are due now; a full queue drops them."""
    clock = asyncio.get_running_loop().time
    pause_s = pacer.next_s() - clock()
    if pause_s > 0:
        await station.until(lambda: False, min(limit_s, max(pause_s, _TICK_S)))
    return pacer.take(clock(), _BATCH_MESSAGES)


def _summary(station: Station, source: Source, seconds: float, late: int) -> dict[str, Any]:
    rate = source.made / seconds if seconds > 0 else 0.0
    stats = station.leaf.totals()
    made = {"run": source.run, "made": source.made, "seconds": round(seconds, 6), "rate": round(rate, 3)}
    sent = {
        "sent": stats.sent,
        "sent_bytes": stats.sent_bytes,
        "dropped": dict(sorted(stats.dropped.items())),
    }
    return made | sent | {"late": late}


def _text(summary: dict[str, Any]) -> str:
    dropped, late = with_hints(summary["dropped"]) or "0", summary["late"]
    text = (
        f"run {summary['run']:08x}: {summary['made']} messages in {summary['seconds']:.3f} s, "
        f"{summary['rate']:.1f}/s; sent {summary['sent']} ({summary['sent_bytes']} bytes), dropped {dropped}"
    )
    return text + (f"; {late} more not sent, because this program was late" if late else "")
