"""Files of the field for `buscoupler capture`: imported into a directory, and written from one."""

import sys
import time
from pathlib import Path
from typing import Final

from bus.names import Names
from bus.text import plain
from capture.files import CaptureError
from capture.formats.format import Format
from capture.formats.table import BY_KEY, FORMATS, PCAPNG, by_name, format_of, plain_name
from capture.names import given
from capture.reader import read
from capture.schema import Kind

_LOOK_S: Final = 0.5
_LINE_S: Final = 10.0


class Progress:
    """The progress of a file: on a terminal one line that changes, else a line now and then."""

    def __init__(self, name: str) -> None:
        self._name, self._began_s = name, time.monotonic()
        self._live = sys.stderr.isatty()
        self._next_s = self._began_s + (_LOOK_S if self._live else _LINE_S)

    def __call__(self, part: float, rows: int) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + (_LOOK_S if self._live else _LINE_S)
            rate = rows / (now_s - self._began_s)
            text = plain(f"{self._name}: {part:.0%}, {rows:,} rows, {rate:,.0f} a second")
            print(f"\r\x1b[K{text}" if self._live else text, end="" if self._live else "\n", file=sys.stderr)
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line from a terminal."""
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def import_files(words: list[str], directory: Path, gateway: str, key: str | None) -> int:
    """Import files, and print what came of each. Return 0; or 1 if one could not be read or held nothing."""
    from capture.formats.imports import imported

    status = 0
    for word in words:
        progress = Progress(word)
        try:
            done = imported(Path(word), directory, gateway, key, progress)
        except CaptureError as error:
            progress.clear()
            print(f"buscoupler capture: {plain(str(error))}", file=sys.stderr)
            status = 1
            continue
        progress.clear()
        held = f", {done.held:,} were there already" if done.held else ""
        print(plain(f"{word}: {done.format}, {done.written:,} rows{held}"), file=sys.stderr)
        for line in done.told:
            print(plain(f"{word}: {line}"), file=sys.stderr)
        status |= not done.written + done.held
    return status


def source_format(path: Path) -> Format:
    """Return the format of a file that is there. Raises `CaptureError` if it is none that is known."""
    from capture.formats.source import Source

    with Source(path) as source:
        return format_of(str(path), source.head)


def has_rows(source: Path) -> bool:
    """Return whether a capture may have other rows than CAN frames: a directory, or pcapng that we wrote.

    A name of nothing counts as a directory. What can be read only once, such as the standard input, counts as
    a file of CAN frames.
    """
    if not source.is_file():
        return source.is_dir() or not (source.exists() or str(source) == "-")
    return source_format(source) is PCAPNG and next(read(source), None) is not None


def format_for(target: str, key: str | None, may_have_rows: bool) -> str:
    """Return the key of the format that a file is written in. Raises `CaptureError`."""
    form = BY_KEY[key] if key else meant(target)
    if form is PCAPNG and not may_have_rows:
        form = BY_KEY["can-pcapng"]
    if not form.writes and form is not PCAPNG:
        raise CaptureError(f"{target}: {form.key} is only read")
    return form.key


def meant(target: str) -> Format:
    """Return the format that the suffix of a file means; without one it is pcapng.

    Raises `CaptureError` for a directory, and for a suffix that means none.
    """
    if Path(target).is_dir():
        raise CaptureError(f"{target}: is a directory: give the name of a file")
    found, suffix = by_name(target), Path(plain_name(target)).suffix
    if found is None and suffix:
        known = ", ".join(one.suffixes[0] for one in FORMATS if one.suffixes)
        raise CaptureError(
            f"{target}: its suffix {suffix} names no format: use one of {known}, or give --format"
        )
    return found or PCAPNG


def export_frames(source: Path, target: str, key: str) -> int:
    """Write the CAN frames of a directory or a file, and messages where they fit. Return 0; or 1 for none."""
    from capture.formats.exports import OTHERS, exported, frames_in

    form = BY_KEY[key]
    has_messages = form.messages and has_rows(source)
    rows = (row for row in read(source) if row.kind == Kind.FRAME) if has_messages else ()
    names = Names(given(str(source))) if has_messages and source.is_dir() else Names()
    with frames_in(source) as found:
        count, messages = exported(found, form, target, (rows, names))
        told = list(found.told.lines(OTHERS))
    none = ": a tap with `wire: true` records them, of a bridge side of CAN with a protocol"
    more = f", {messages:,} messages" if messages else none if not count and has_rows(source) else ""
    print(f"{count:,} CAN frames{more}", file=sys.stderr)
    for line in told:
        print(plain(line), file=sys.stderr)
    return int(not count + messages)
