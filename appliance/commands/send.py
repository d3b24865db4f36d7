"""`buscoupler send ENDPOINT PATTERN`: messages from the command line, a file or a pipe to any link."""

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
_BATCH_BYTES = 16 * 1024  # a device's whole queue is 64 KiB
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
    what.add_argument("--file", metavar="FILE", help="one message a line of this file; - is standard input")
    what.add_argument("--binary", type=argument(_content), metavar="FILE", help="the data: all of this file")
    parser.add_argument(
        "--type", type=argument(type_of), default=PUB, help="pub, pub+cache, ... (default pub)"
    )
    parser.add_argument("--raw", action="store_true", help="no frame: the bytes as they are (to a bus only)")
    parser.add_argument("--count", type=int, metavar="N", help="send it N times")
    parser.add_argument(
        "--timeout", type=above_zero, default=10.0, metavar="S", help="wait so long for a peer or device (10)"
    )


def _content(name: str) -> bytes:
    return Path(name).read_bytes()


def run(options: argparse.Namespace) -> int:
    return asyncio.run(send(options))


async def send(options: argparse.Namespace) -> int:
    """0 if all was sent; 1 if nobody was there in time, or something was dropped."""
    encode = _encoder(options)
    station = Station(link_of(options), options.endpoint.untold, options.listen)
    batches = _batches(options, encode, min(_BATCH_BYTES, station.ahead_bytes))
    async with station:
        if not await station.peer(options.timeout):
            return _complain(f"nobody there within {options.timeout:g} s", station)
        async with aclosing(batches):
            late = await _say_all(station, batches, options.timeout)
        await station.drain(options.timeout)
    dropped = station.leaf.totals().dropped
    if dropped:
        print(f"buscoupler send: {options.endpoint.word}: dropped: {reasons(dropped)}", file=sys.stderr)
    return _complain(f"no room within {options.timeout:g} s", station) if late else int(bool(dropped))


def _complain(text: str, station: Station) -> int:
    if station.stops:
        return 0
    print(f"buscoupler send: {station.link.name}: {text}{because(station.link)}", file=sys.stderr)
    return 1


async def _say_all(station: Station, batches: AsyncGenerator[list[bytes], None], timeout_s: float) -> bool:
    """Whether there was no room in time for some of it."""
    async for batch in batches:
        if not await station.room(sum(map(cost, batch)), timeout_s):
            return True
        station.say(batch)
        if station.stops:
            return False
        await asyncio.sleep(0)  # one turn of the loop: links read, and signals are heard
    return False


def cost(message: bytes) -> int:
    """Bytes that a message takes in a link's queue, at most."""
    return len(message) + MESSAGE_COST_BYTES


def _encoder(options: argparse.Namespace) -> Encode:
    if not options.raw:
        if options.pattern is None:
            options.fail("PATTERN is missing: like fridge/temp, or / for the empty one")
        return partial(pack, options.type, options.pattern)
    if options.endpoint.kind != "bus":
        options.fail("--raw is for a bus: serial lines and CAN carry frames only")
    if options.pattern is not None:
        options.fail("--raw sends bytes as they are, without a PATTERN")
    return bytes


def _batches(
    options: argparse.Namespace, encode: Encode, limit_bytes: int
) -> AsyncGenerator[list[bytes], None]:
    """What is to be sent, in lists that any link's queue can hold."""
    if options.file is not None:
        if options.count is not None:
            options.fail("--count is for one message, --file has many")
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
    """Lines as they come, without their ends; the last may have none. Raises `FrameError` for a giant."""
    loop, rest = asyncio.get_running_loop(), b""
    while data := await _read(loop, fd):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _MESSAGE_BYTES_MAX:
            raise FrameError(f"a line of more than {_MESSAGE_BYTES_MAX} bytes is no message")
        if lines:
            yield lines
    if rest:
        yield [rest]


async def _read(loop: AbstractEventLoop, fd: int) -> bytes:
    """What is there; waits on the loop where one can wait. Regular files never make us wait."""
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
    """Lists of messages, each small enough for any queue; at least one message in each."""
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
