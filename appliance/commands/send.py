"""`buscoupler send ENDPOINT PATTERN`: send messages from the command line, a file or a pipe to any link."""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from functools import partial
from itertools import count, repeat

from appliance.commandline.arguments import argument, free_text, hex_bytes
from appliance.probe.endpoint import add_timeout, endpoint_arguments, link_of
from appliance.probe.live import add_live, cleared
from appliance.probe.raw import identifiers_of
from appliance.probe.station import MESSAGE_COST_BYTES, Station
from appliance.probe.words import type_of, with_hints
from appliance.process.running import run_loop
from bus.errors import FrameError
from bus.machine.files import encoding_of
from bus.machine.inputs import SILENT_S, open_input, opened, silence_of
from bus.text import MARK
from bus.wire.frame import PUB, pack
from bus.wire.notation import pattern_of

_READ_BYTES = 65536
_BATCH_MESSAGES = 512
_BATCH_BYTES = 16 * 1024  # the whole queue of a device is 64 KiB
_MESSAGE_BYTES_MAX = 1 << 20
_CONTENT_BYTES = 64 << 20  # of a file that is one message: buses may take longer ones than others

Encode = Callable[[bytes], bytes]
Messages = AsyncGenerator[Iterable[bytes], None]


def arguments(parser: argparse.ArgumentParser) -> None:
    endpoint_arguments(parser, count="send the message N times")
    parser.add_argument(
        "pattern", nargs="?", type=argument(pattern_of), metavar="PATTERN", help="like fridge/temp/7"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--data", type=free_text, metavar="TEXT", help="the data, as text (default: none)")
    what.add_argument("--hex", type=hex_bytes, metavar="HEX", help="the data, as hex digits")
    what.add_argument(
        "--file", metavar="FILE", help="send each line of this file as a message; - is standard input"
    )
    what.add_argument(
        "--binary", type=argument(_content), metavar="FILE", help="the data: the whole content of this file"
    )
    parser.add_argument("--type", type=argument(type_of), default=PUB, help="pub, pub+cache, ... (pub)")
    parser.add_argument("--raw", action="store_true", help="send the bytes without a frame (to a bus only)")
    add_timeout(parser)
    add_live(parser)


def _content(name: str) -> bytes:
    with opened(name) as file:
        data = file.read(_CONTENT_BYTES + 1)
    if len(data) > _CONTENT_BYTES:
        raise FrameError(f"{name}: it is longer than {_CONTENT_BYTES} bytes")
    return data


def run(options: argparse.Namespace) -> int:
    return run_loop(send(options))


async def send(options: argparse.Namespace) -> int:
    """Send all messages. Return 0; or 1 if no peer was there, it hung up, or a message was dropped."""
    messages = _messages(options, _encoder(options))
    await cleared(options, options.endpoint, identifiers_of(options.endpoint, options.pattern))
    station = Station(link_of(options, hears=False), options.endpoint.uncounted, options.listen)
    async with station:
        if not await station.peer(options.timeout):
            return station.complain("send", f"no peer, device or broker within {options.timeout:g} s")
        async with aclosing(messages):
            late = await _say_all(station, messages, options.timeout)
        has_left = await station.drain(options.timeout)
        if options.endpoint.remote and await station.hung_up():
            return station.complain("send", "the other end hung up: what arrived is not known")
    dropped = station.leaf.totals().dropped
    if dropped:
        word = options.endpoint.word
        print(f"buscoupler send: {word}: messages dropped: {with_hints(dropped)}", file=sys.stderr)
    if late or station.stops:
        return station.complain("send", f"its queue stayed full for {options.timeout:g} s")
    if not has_left and not dropped:
        return station.complain(
            "send", f"it has not taken all within {options.timeout:g} s: what came is not known"
        )
    return int(bool(dropped))


async def _say_all(station: Station, messages: Messages, timeout_s: float) -> bool:
    """Send all messages. Return whether the queue of a peer stayed full for `timeout_s`, which ends it."""
    limit_bytes = min(_BATCH_BYTES, station.ahead_bytes)
    while some := await station.unless_stopped(anext(messages, None)):
        for batch in _cut(some, limit_bytes):
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


def _messages(options: argparse.Namespace, encode: Encode) -> Messages:
    """Return an iterator of the messages to send. Wrong use ends the program with status 2."""
    if options.file is not None:
        if options.count is not None:
            options.fail("--count repeats one message, but --file has many: leave --count out")
        return _from_lines(_descriptor(options), encode, options.file)
    data = (
        options.data.encode(errors="surrogateescape")
        if options.data is not None
        else options.hex or options.binary or b""
    )
    try:
        message = encode(data)
    except FrameError as error:
        options.fail(str(error))
    return _at_once(repeat(message, options.count or 1))


def _descriptor(options: argparse.Namespace) -> int:
    if options.file == "-":
        return os.dup(sys.stdin.fileno())
    try:
        return open_input(options.file)
    except OSError as error:
        options.fail(f"{options.file}: {error.strerror}")
        raise


async def _at_once(messages: Iterable[bytes]) -> Messages:
    yield messages


async def _from_lines(fd: int, encode: Encode, name: str = "-") -> Messages:
    numbers, words = count(1), "" if name == "-" else silence_of(fd, name)
    telling = asyncio.get_running_loop().call_later(SILENT_S, _tell, words)
    try:
        async for lines in _without_mark(_lines(fd)):
            telling.cancel()
            yield [_encoded(encode, text, number) for text, number in zip(lines, numbers, strict=False)]
    finally:
        telling.cancel()
        os.close(fd)


def _tell(words: str) -> None:
    if words:
        print(f"buscoupler send: {words}", file=sys.stderr, flush=True)


async def _without_mark(all_lines: AsyncGenerator[list[bytes], None]) -> AsyncGenerator[list[bytes], None]:
    """Yield lines without the mark of the byte order that an editor may have put before the first.

    Raises `FrameError` for the mark of an encoding in which no byte ends a line.
    """
    first = True
    async for lines in all_lines:
        if first and (found := encoding_of(lines[0])):
            raise FrameError(f"the file is {found}: save it as UTF-8, or send it whole by --binary")
        yield [lines[0].removeprefix(MARK), *lines[1:]] if first else lines
        first = False


def _encoded(encode: Encode, text: bytes, number: int) -> bytes:
    try:
        return encode(text.removesuffix(b"\r"))
    except FrameError as error:
        raise FrameError(f"line {number}: {error}") from error


async def _lines(fd: int) -> AsyncGenerator[list[bytes], None]:
    """Yield lines of a file as they arrive, without line ends.

    Raises `FrameError` for one that is too long.
    """
    rest = b""
    while data := await _read(fd):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _MESSAGE_BYTES_MAX:
            raise FrameError(f"a line is longer than {_MESSAGE_BYTES_MAX} bytes, and cannot be a message")
        if lines:
            yield lines
    if rest:
        yield [rest]


async def _read(fd: int) -> bytes:
    """Return the next bytes of a file, waiting for them on the loop. A regular file is read at once."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(fd, ready.set)
    except PermissionError:
        return os.read(fd, _READ_BYTES)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)
    return os.read(fd, _READ_BYTES)


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
