"""`buscoupler send ENDPOINT PATTERN`: send messages from the command line, a file or a pipe to any link."""

import argparse
import asyncio
import os
import sys
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from functools import partial
from itertools import repeat
from pathlib import Path

from appliance.probe.endpoint import arguments as endpoint_arguments
from appliance.probe.endpoint import link_of
from appliance.probe.station import MESSAGE_COST_BYTES, Station, because, reasons
from appliance.probe.words import above_zero, argument, hex_bytes, pattern_of, type_of
from bus.errors import FrameError
from bus.wire.frame import PUB, pack

_READ_BYTES = 65536
_BATCH_MESSAGES = 512
_BATCH_BYTES = 16 * 1024  # the whole queue of a device is 64 KiB
_MESSAGE_BYTES_MAX = 1 << 20

Encode = Callable[[bytes], bytes]


def arguments(parser: argparse.ArgumentParser) -> None:
    endpoint_arguments(parser)
    parser.add_argument(
        "pattern", nargs="?", type=argument(pattern_of), metavar="PATTERN", help="like fridge/temp/7"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--data", metavar="TEXT", help="the data, as text (default: none)")
    what.add_argument("--hex", type=hex_bytes, metavar="HEX", help="the data, as hex digits")
    what.add_argument(
        "--file", metavar="FILE", help="send each line of this file as a message; - is standard input"
    )
    what.add_argument(
        "--binary", type=argument(_content), metavar="FILE", help="the data: the whole content of this file"
    )
    parser.add_argument("--type", type=argument(type_of), default=PUB, help="pub, pub+cache, ... (pub)")
    parser.add_argument("--raw", action="store_true", help="send the bytes without a frame (to a bus only)")
    parser.add_argument("--count", type=int, metavar="N", help="send the message N times")
    parser.add_argument(
        "--timeout",
        type=above_zero,
        default=10.0,
        metavar="S",
        help="wait S seconds for a peer or device (10)",
    )


def _content(name: str) -> bytes:
    return Path(name).read_bytes()


def run(options: argparse.Namespace) -> int:
    return asyncio.run(send(options))


async def send(options: argparse.Namespace) -> int:
    """Send, and return 0; or 1 if no peer was there in time, or a message was dropped."""
    encode = _encoder(options)
    station = Station(link_of(options), options.endpoint.uncounted, options.listen)
    batches = _batches(options, encode, min(_BATCH_BYTES, station.ahead_bytes))
    async with station:
        if not await station.peer(options.timeout):
            return _complain(f"no peer or device within {options.timeout:g} s", station)
        async with aclosing(batches):
            late = await _say_all(station, batches, options.timeout)
        await station.drain(options.timeout)
    dropped = station.leaf.totals().dropped
    if dropped:
        print(
            f"buscoupler send: {options.endpoint.word}: messages dropped: {reasons(dropped)}", file=sys.stderr
        )
    return (
        _complain(f"its queue stayed full for {options.timeout:g} s", station) if late else int(bool(dropped))
    )


def _complain(text: str, station: Station) -> int:
    if station.stops:
        return 0
    print(f"buscoupler send: {station.link.name}: {text}{because(station.link)}", file=sys.stderr)
    return 1


async def _say_all(station: Station, batches: AsyncGenerator[list[bytes], None], timeout_s: float) -> bool:
    """Send the batches. Return whether it stopped because a queue stayed full for `timeout_s`."""
    async for batch in batches:
        if not await station.room(sum(map(cost, batch)), timeout_s):
            return True
        station.say(batch)
        if station.stops:
            return False
        await asyncio.sleep(0)  # one turn of the loop: links read, and signals are handled
    return False


def cost(message: bytes) -> int:
    """Return the most bytes that a message takes in a link's queue."""
    return len(message) + MESSAGE_COST_BYTES


def _encoder(options: argparse.Namespace) -> Encode:
    if not options.raw:
        if options.pattern is None:
            options.fail("PATTERN is missing: write one like fridge/temp, or / for the empty pattern")
        return partial(pack, options.type, options.pattern)
    if options.endpoint.medium is not None:
        options.fail("--raw is for a bus: other media carry only frames")
    if options.pattern is not None:
        options.fail("--raw sends bytes without a frame: leave PATTERN out")
    return bytes


def _batches(
    options: argparse.Namespace, encode: Encode, limit_bytes: int
) -> AsyncGenerator[list[bytes], None]:
    """Return the messages to send, in lists that fit in any link's queue."""
    if options.file is not None:
        if options.count is not None:
            options.fail("--count repeats one message, but --file has many: leave --count out")
        return _from_lines(_descriptor(options), encode, limit_bytes)
    if options.count is not None and options.count < 1:
        options.fail("--count must be at least 1")
    data = options.data.encode() if options.data is not None else options.hex or options.binary or b""
    try:
        message = encode(data)
    except FrameError as error:
        options.fail(str(error))
    return _as_async(_cut(repeat(message, options.count or 1), limit_bytes))


def _descriptor(options: argparse.Namespace) -> int:
    if options.file == "-":
        return os.dup(sys.stdin.fileno())
    try:
        return os.open(options.file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        options.fail(f"{options.file}: {error.strerror}")
        raise


async def _as_async(lists: Iterable[list[bytes]]) -> AsyncGenerator[list[bytes], None]:
    for one in lists:
        yield one


async def _from_lines(fd: int, encode: Encode, limit_bytes: int) -> AsyncGenerator[list[bytes], None]:
    number = 0
    try:
        async for lines in _lines(fd):
            messages = []
            for text in lines:
                number += 1
                messages.append(_encoded(encode, text, number))
            for batch in _cut(messages, limit_bytes):
                yield batch
    finally:
        os.close(fd)


def _encoded(encode: Encode, text: bytes, number: int) -> bytes:
    try:
        return encode(text.removesuffix(b"\r"))
    except FrameError as error:
        raise FrameError(f"line {number}: {error}") from error


async def _lines(fd: int) -> AsyncGenerator[list[bytes], None]:
    """Yield lines as they arrive, without line ends. Raises `FrameError` for a line that is too long."""
    loop, rest = asyncio.get_running_loop(), b""
    while data := await _read(loop, fd):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _MESSAGE_BYTES_MAX:
            raise FrameError(f"a line is longer than {_MESSAGE_BYTES_MAX} bytes, and cannot be a message")
        if lines:
            yield lines
    if rest:
        yield [rest]


async def _read(loop: AbstractEventLoop, fd: int) -> bytes:
    """Read the next bytes; wait for them on the loop. A regular file is read at once."""
    ready: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(fd, _set, ready)
    except PermissionError:
        return os.read(fd, _READ_BYTES)
    try:
        await ready
    finally:
        loop.remove_reader(fd)
    return os.read(fd, _READ_BYTES)


def _set(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


def _cut(messages: Iterable[bytes], limit_bytes: int) -> Iterator[list[bytes]]:
    """Yield lists of messages, at least one in each, that fit in any link's queue."""
    batch: list[bytes] = []
    size = 0
    for message in messages:
        if batch and (len(batch) >= _BATCH_MESSAGES or size + cost(message) > limit_bytes):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += cost(message)
    if batch:
        yield batch
