"""`buscoupler capture`: record any endpoint, turn captures into pcapng, put them back on a link.

capture ENDPOINT... --directory DIR
    write Parquet files, as a tap of a topology does
capture ENDPOINT... --pcapng FILE
    write a file for Wireshark; - is the standard output
capture import FILE... --directory DIR
    put files of the field into Parquet files; CAN frames become rows as a tap
    with `wire: true` records them
capture export DIRECTORY|FILE FILE
    write a capture as one file, in the format that its suffix means, or
    --format; - is the standard output
capture replay FILE|DIRECTORY ENDPOINT
    send the messages of a capture, with the pauses that were between them
capture dissector
    print the path of the dissector for Wireshark and tshark
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from math import inf
from pathlib import Path
from typing import BinaryIO

from appliance.commandline.arguments import above_zero, checked_word, whole_above_zero, wrong_use
from appliance.commandline.names import names_argument
from appliance.probe.endpoint import add_keys, parse_endpoint, say_confined
from appliance.probe.files import export_frames, format_for, has_rows, import_files, meant
from appliance.probe.replay import replay
from appliance.probe.station import because
from appliance.process.interrupts import status_of
from appliance.process.running import run_loop
from appliance.process.serve import Stop
from bus.errors import LinkError
from bus.hub import Hub, Link, Pipe, arrived_ns
from bus.key_types import check_name
from bus.keys import ring_of
from bus.names import texts
from bus.text import amount, plain
from bus.wire.batch import Batch, payloads
from capture.files import CaptureError
from capture.formats.source import LeftOut
from capture.formats.table import BY_KEY, FORMATS, PCAPNG
from capture.formats.target import check_apart, written
from capture.names import given
from capture.pcapng import DISSECTOR, Packet, Writer
from capture.reader import read
from capture.schema import TOLD, Direction, Kind
from devices.child import settle
from devices.tap.recorder import Options, Recorder
from devices.tap.watch import Locate

_LOOK_S = 0.1
_END_S = 60.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (__doc__ or "").partition("\n\n")[2] + formats_text()
    parser.set_defaults(fail=parser.error)
    parser.add_argument(
        "words", nargs="+", metavar="WORD",
        help="endpoints, as `send` and `recv` take them; or the words of a form below",
    )  # fmt: skip
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--directory", type=Path, metavar="DIR", help="write Parquet files under DIR")
    where.add_argument("--pcapng", metavar="FILE", help="write pcapng; - is the standard output")
    parser.add_argument(
        "--gateway",
        type=checked_word(check_name),
        default="here",
        metavar="NAME",
        help="our name in the capture (here)",
    )
    parser.add_argument("--seconds", type=above_zero, default=inf, metavar="S", help="stop after S seconds")
    parser.add_argument(
        "--count", type=whole_above_zero, default=sys.maxsize, metavar="N", help="stop after N messages"
    )
    add_keys(parser)
    names_argument(parser, "names to leave in what is written, beside those that are there already")
    parser.add_argument(
        "--format", choices=list(BY_KEY), metavar="FORMAT", help="of a file, where its suffix does not say it"
    )
    parser.add_argument(
        "--candump", action="store_const", dest="format", const="candump", help="the same as --format candump"
    )
    parser.add_argument("--loop", type=whole_above_zero, default=1, metavar="N", help="replay N times (1)")
    parser.add_argument("--live", action="store_true", help="replay CAN frames onto a real wire, too")
    parser.add_argument("--hub", metavar="NAME", help="replay only what was seen there, like 'bus plant'")
    parser.add_argument("--bus", metavar="NAME", help="replay only this segment, like 'bus plant'")
    parser.add_argument("--dir", choices=("rx", "tx"), help="replay only what was received, or sent")
    parser.add_argument("--envelopes", action="store_true", help="replay envelopes too, not just frames")
    speed = parser.add_mutually_exclusive_group()
    speed.add_argument(
        "--speed", type=above_zero, default=1.0, metavar="N", help="replay N times as fast (1)"
    )
    speed.add_argument("--fast", action="store_true", help="replay as fast as the link takes it")


def run(options: argparse.Namespace) -> int:
    first, *rest = options.words
    if options.words == ["dissector"]:
        print(DISSECTOR)
        return 0
    if first == "import":
        if not rest or not options.directory:
            options.fail("import takes FILE... --directory DIR")
        writable(options.directory)
        return import_files(rest, options.directory, options.gateway, options.format)
    if first in ("export", "replay"):
        if len(rest) != 2:
            words = {"export": "DIRECTORY|FILE FILE", "replay": "FILE|DIRECTORY ENDPOINT"}
            options.fail(f"{first} takes {words[first]}")
        if first == "replay":
            return replay(Path(rest[0]), rest[1], options)
        with wrong_use(options.fail, CaptureError):
            key = options.format or meant(rest[1]).key
        return export(Path(rest[0]), rest[1], key, options.names)
    if not options.directory and not options.pcapng:
        options.fail("say where to write: --directory DIR or --pcapng FILE")
    with wrong_use(options.fail, LinkError):
        for word in options.words:
            parse_endpoint(word)
    return run_loop(capture(options))


def formats_text() -> str:
    """Return a line for each format of a file."""
    lines = [f"  {one.key:<11} {' '.join(one.suffixes):<15} {one.help}" for one in FORMATS]
    return "\n".join(["\nformats, each also with .gz or .zst behind:", *lines])


def export(source: Path, target: str, key: str | None = None, more: Iterable[int | str] = ()) -> int:
    """Write a capture to a file. Return 0; or 1 if only CAN frames are written, and there are none."""
    check_apart(source, target)
    key = format_for(target, key, has_rows(source))
    return export_rows(source, target, more) if key == PCAPNG.key else export_frames(source, target, key)


def export_rows(source: Path, target: str, more: Iterable[int | str] = ()) -> int:
    """Write the rows of a directory or of pcapng as pcapng, with the names beside it and `more`.

    Print the number of rows of each place, and what was left out, and return 0.
    """
    writer, counts, left = Writer(), Counter[tuple[str, str, str]](), LeftOut()
    rows = read(source, told=True, left=left)
    first = list(islice(rows, 1))  # a capture that cannot be read must not cost the target
    names = texts([*(given(str(source)) if source.is_dir() else ()), *more])
    with opened(target) as file:
        file.write(writer.head())
        file.write(writer.names(names, first[0].ts_ns if first else 0))
        for packet in chain(first, rows):
            file.write(writer.blocks(packet))
            if packet.kind not in TOLD:
                counts[packet.gateway, packet.hub, packet.bus] += 1
    for (gateway, hub, bus), count in sorted(counts.items()):
        print(
            plain(f"{gateway}, {hub or 'everywhere'}, {bus or 'all'}: {amount(count, 'row')}"),
            file=sys.stderr,
        )
    for line in left.lines():
        print(plain(line), file=sys.stderr)
    return 0


@contextlib.contextmanager
def opened(target: str, live: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing, as `written` does. Raises `CaptureError`."""
    try:
        with written(target, live=live) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CaptureError(f"{target}: {error.strerror}") from error


class ListenHub(Hub):
    """A hub that forwards nothing. It counts messages of peers in `heard`, and shows them to its taps."""

    __slots__ = ("heard",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.heard = 0

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        if origin is None:
            return
        origin.stats.receive(batch)
        self.heard += batch.count
        for tap in self.taps:
            tap(batch, origin)


async def capture(options: argparse.Namespace) -> int:
    """Capture until the time, the count or a signal. Return 1 if no message came or some were lost, else 0.

    A signal is the normal end if there is no `--count` and no `--seconds`.
    """
    loop = asyncio.get_running_loop()
    stop = Stop(loop)
    keys = ring_of(options.keys)
    endpoints = [parse_endpoint(word) for word in options.words]
    links = [(endpoint.link(keys=keys), ListenHub(endpoint.word)) for endpoint in endpoints]
    for endpoint in endpoints:
        say_confined(endpoint)
    hubs = [hub for _, hub in links]
    with contextlib.ExitStack() as stack:
        sink = _record(options, hubs, stack, stop)
        for link, hub in links:
            link.open(hub, loop)
            stack.callback(link.close)
        end_s = loop.time() + options.seconds
        while not stop.is_set() and loop.time() < end_s and sum(hub.heard for hub in hubs) < options.count:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), min(_LOOK_S, max(0.0, end_s - loop.time())))
        if isinstance(sink, Sheet):
            sink.check()
    recorder = sink if isinstance(sink, Recorder) else None
    if recorder is not None and not settle(_END_S):
        return 1
    status = _conclude(links, recorder)
    wanted = options.count < sys.maxsize or options.seconds < inf
    return status_of(stop.number) if stop.number and wanted else status


def _record(
    options: argparse.Namespace,
    hubs: list[ListenHub],
    stack: contextlib.ExitStack,
    stop: Stop,
) -> "Recorder | Sheet":
    loop = asyncio.get_running_loop()
    if options.pcapng:
        file = stack.enter_context(opened(options.pcapng, live=True))
        sheet = Sheet(options.gateway, file, texts(options.names), stop.set)
        stack.callback(sheet.flush)
        for hub in hubs:
            hub.tap(partial(sheet.put, hub.name))
        loop.call_soon(sheet.tick, loop)
        return sheet
    names = texts(options.names)
    writable(options.directory)
    recorder = Recorder("capture", options.gateway, options.directory, Options(idle=False), names)
    recorder.open(loop)
    stack.callback(recorder.close)
    for hub in hubs:
        recorder.watch(hub, f"link {hub.name}", _on(hub.name))
    return recorder


def writable(directory: Path) -> None:
    """Make a directory. Raises `CaptureError` if nothing can be written there, for which a recorder waits."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except FileExistsError:
        raise CaptureError(f"{directory}: is no directory, and captures are one: give another name") from None
    except OSError as error:
        raise CaptureError(f"{directory}: {error.strerror}") from error


def _on(name: str) -> Locate:
    return lambda pipe: (name, pipe.name if pipe else "", Direction.RX)


class Sheet:
    """A pcapng file that taps write to. It is flushed a few times a second, so that a reader sees it live.

    `on_fault` is called if the file takes no more, and `check` raises that error.
    """

    def __init__(
        self, gateway: str, file: BinaryIO, names: Iterable[str], on_fault: Callable[[], None]
    ) -> None:
        self._gateway, self._file, self._on_fault = gateway, file, on_fault
        self._fault: OSError | None = None
        self._writer, self._boot, self._cap_seq = Writer(), time.time_ns(), 0
        file.write(self._writer.head() + self._writer.names(names, self._boot))

    def put(self, name: str, batch: Batch, pipe: Pipe | None) -> None:
        peer, times_ns = pipe.name if pipe else "", arrived_ns(batch, pipe, time.time_ns())
        for message, at_ns in zip(payloads(batch), times_ns, strict=True):
            row = at_ns, self._gateway, f"link {name}", name, peer, int(Direction.RX), int(Kind.FRAME)
            packet = Packet(*row, 0, self._boot, self._cap_seq, 1, message)
            self._do(self._file.write, self._writer.blocks(packet))
            self._cap_seq += 1

    def _do(self, operation: Callable[..., object], *arguments: object) -> None:
        """Call an operation on the file, unless one has failed before."""
        try:
            if self._fault is None:
                operation(*arguments)
        except OSError as error:
            self._fault = error
            self._on_fault()

    def flush(self) -> None:
        self._do(self._file.flush)

    def check(self) -> None:
        """Flush the file. Raises the `OSError` of the first operation that failed."""
        self.flush()
        if self._fault is not None:
            raise self._fault

    def tick(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._file.closed:
            self.flush()
            loop.call_later(_LOOK_S, self.tick, loop)


def _conclude(links: list[tuple[Link, ListenHub]], recorder: Recorder | None) -> int:
    for link, hub in links:
        print(f"{hub.name}: {hub.heard} messages{'' if hub.heard else because(link)}", file=sys.stderr)
    lost = 0 if recorder is None else recorder.lost
    if lost:
        print(f"buscoupler capture: {lost} messages came too fast: not captured", file=sys.stderr)
    return int(lost > 0 or not any(hub.heard for _, hub in links))
