"""Logs of candump: `(1436509052.249713) can0 123#1122`, one frame a line, as `candump -L` writes them.

Source: candump.c and lib.c of can-utils, and python-can 4.6. Times have 6 digits, or 9 with its `-N`; behind
the frame stands `T` or `R` with its `-x`, and in what python-can writes behind all but error frames; in front
of a name stand blanks up to the longest name of all interfaces that it heard so far. Read by numpy, a
megabyte at a time. What it shows without `-L` is read by `console`. Needs numpy.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import numpy as np

from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, REMOTE, STANDARD_MAX
from capture.formats.cells import DECIMAL, HEX, Column, numbers
from capture.formats.console import ConsoleReader
from capture.formats.looks import LOGGED, SHOWN
from capture.formats.source import LeftOut, Source, line_blocks
from capture.frames import CLASSIC_DATA, FD_DATA, FD_SIZES, Flags, Frames, Ints, Octets
from capture.schema import TIME_MAX_NS

_IS_SIZE: Final = np.isin(np.arange(256), FD_SIZES)
_SECONDS_DIGITS, _FRACTION_DIGITS = 10, 9
_SECONDS_MAX: Final = TIME_MAX_NS // 10**9
_NAME_CHARS: Final = 15  # IFNAMSIZ, without its zero
_DIRECTED: Final = re.compile(rb"#\S* [TR]$")
_CODED: Final = re.compile(rb"#(#[0-9A-Fa-f]{129}|([0-9A-Fa-f]{16}|R8)_[9A-Fa-f])$")
_FULL: Final = re.compile(rb"#(#[0-9A-Fa-f]{129}|[0-9A-Fa-f]{16}|([0-9A-Fa-f]{16}|R8)_[9A-Fa-f])$")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_.-]")
_BAD: Final = "lines that are none of candump -L"


def read(source: Source, style: dict[str, Any]) -> Iterator[Frames]:
    """Read frames. `style` learns the step of times, and whether the log tells directions, and none of
    error frames (`bare_errors`)."""
    if SHOWN.search(source.head) and not LOGGED.search(source.head):
        yield from ConsoleReader(source, style).read()
        return
    style.update(step_ns=1000, direction=False, bare_errors=False)
    end = _End(style)
    for block in line_blocks(source, end.is_whole):
        frames = parse(block, source.told, style)
        if len(frames):
            end.learn(frames)
            yield frames


class _End:
    """The rule for a last line without an end: it is whole if its frame has all the data that one may have.

    Then only a direction or a length code could follow, and a log that had none so far is taken to have none.
    """

    def __init__(self, style: dict[str, Any]) -> None:
        self._style, self._knows, self._codes = style, False, False

    def learn(self, frames: Frames) -> None:
        """Take frames of the log."""
        self._knows = True
        self._codes |= bool((frames.marks.astype(np.bool_) & ~frames.is_fd).any())

    def is_whole(self, line: bytes) -> bool:
        """Return whether nothing of the last line is missing."""
        if _DIRECTED.search(line):
            return True
        full = _CODED if self._codes else _FULL
        return self._knows and not self._style["direction"] and bool(full.search(line))


class _Lines:
    """A block of lines: its bytes, with room behind, and the places where each line begins and ends."""

    def __init__(self, block: bytes) -> None:
        self.octets = np.frombuffer(block + bytes(2 * FD_DATA + 16), np.uint8)
        ends = np.flatnonzero(self.octets[: len(block)] == 10)
        starts = np.concatenate([[0], ends[:-1] + 1])
        ends = ends - (self.octets[ends - 1] == 13)
        full = ends > starts
        self.starts, self.ends = starts[full], ends[full]

    def first(self, char: bytes, after: Ints) -> Ints:
        """Return the place of the first `char` from each place on, the end of its line if there is none."""
        places = np.append(np.flatnonzero(self.octets == char[0]), len(self.octets))
        found: Ints = np.minimum(places[np.searchsorted(places, after)], self.ends)
        return found

    def past_blanks(self, after: Ints) -> Ints:
        """Return the place of the first char from each place on that is no blank, at most the line's end."""
        if not (self.at(after) == ord(" ")).any():
            return after
        places = np.append(np.flatnonzero(self.octets != ord(" ")), len(self.octets))
        found: Ints = np.minimum(places[np.searchsorted(places, after)], self.ends)
        return found

    def number(self, start: Ints, end: Ints, width: int, table: Octets, base: int) -> tuple[Ints, Flags]:
        """Return the numbers of 1 to `width` digits between two places, and which are some."""
        return numbers(self.octets, Column(start, end), width, table, base)

    def at(self, places: Ints) -> Octets:
        return self.octets[np.minimum(places, len(self.octets) - 1)]


def parse(block: bytes, told: LeftOut, style: dict[str, Any]) -> Frames:
    """Read frames out of whole lines."""
    lines = _Lines(block)
    dot = lines.first(b".", lines.starts)
    close = lines.first(b")", dot)
    seconds, good = lines.number(lines.starts + 1, dot, _SECONDS_DIGITS, DECIMAL, 10)
    fraction, is_fraction = lines.number(dot + 1, close, _FRACTION_DIGITS, DECIMAL, 10)
    good &= is_fraction & (lines.at(lines.starts) == ord("("))
    fraction *= 10 ** np.clip(_FRACTION_DIGITS - (close - dot - 1), 0, _FRACTION_DIGITS)
    good &= (seconds < _SECONDS_MAX) | (seconds == _SECONDS_MAX) & (fraction <= TIME_MAX_NS % 10**9)
    name = lines.past_blanks(close + 2)
    space = lines.first(b" ", name)
    good &= (lines.at(close + 1) == ord(" ")) & (space > name) & (space < lines.ends)
    rest = lines.first(b" ", space + 1)
    frame = _frame(lines, space + 1, rest)
    is_sent, is_direction = _direction(lines, rest)
    good &= frame.pop() & is_direction & (space - name <= _NAME_CHARS)
    left = ~good
    if left.any():
        at = int(np.flatnonzero(left)[0])
        told.leave(_BAD, int(left.sum()), block[lines.starts[at] : lines.ends[at]])
    if good.any():
        if (close - dot - 1)[good].max() > 6:
            style["step_ns"] = 1
        told_of, is_error = (rest < lines.ends)[good], (frame[0][good] & ERROR) != 0
        style["direction"] = bool(style["direction"] or told_of.any())
        style["bare_errors"] = bool(style.get("bare_errors") or (is_error & ~told_of).any())
    channel, names = _names(lines, name[good], space[good])
    times = seconds * 10**9 + fraction
    columns = (column[good] for column in (is_sent, *frame))
    return Frames.of([times[good], channel, *columns], names)


def _names(lines: _Lines, start: Ints, end: Ints) -> tuple[Ints, list[str]]:
    """Return the number of each interface, and their names."""
    if not len(start):
        return start, []
    octets = lines.octets[start[:, None] + np.arange(_NAME_CHARS + 1)]
    octets = np.where(np.arange(_NAME_CHARS + 1) < (end - start)[:, None], octets, 0).astype(np.uint8)
    words = octets.view(np.uint64)
    if (words == words[0]).all():
        return np.zeros(len(start), np.int64), [_text(octets[0])]
    _, first, channel = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return channel.reshape(-1).astype(np.int64), [_text(octets[at]) for at in first]


def _text(octets: Octets) -> str:
    return octets.tobytes().rstrip(b"\0").decode(errors="replace")


def _direction(lines: _Lines, rest: Ints) -> tuple[Flags, Flags]:
    """Return which frames were sent, and which lines end well: with nothing, ` T` or ` R`."""
    more = lines.ends - rest
    letter = lines.at(rest + 1)
    is_sent = (more == 2) & (letter == ord("T"))
    return is_sent, (more == 0) | is_sent | ((more == 2) & (letter == ord("R")))


def _frame(lines: _Lines, start: Ints, end: Ints) -> list[Any]:
    """Return the columns of frames from `ids` on, as `Frames` has them, and last which are right."""
    sharp = lines.first(b"#", start)
    ids, good = lines.number(start, sharp, 8, HEX, 16)
    wide = sharp - start == 8
    good &= (wide & (ids <= ERROR | IDENTIFIER)) | ((sharp - start == 3) & (ids <= STANDARD_MAX))
    ids = np.where(wide & (ids & ERROR == 0), ids | EXTENDED, ids)
    is_fd = lines.at(sharp + 1) == ord("#")
    is_remote = lines.at(sharp + 1) == ord("R")
    begin = sharp + 1 + 2 * is_fd + is_remote
    under = lines.first(b"_", sharp)
    stop = np.minimum(under, end)
    code = HEX[lines.at(under + 1)]
    has_code = under < end
    digits = stop - begin
    sizes = np.where(is_remote, np.where(digits == 1, HEX[lines.at(begin)], 0), digits // 2)
    good &= np.where(is_remote, (digits >= 0) & (digits <= 1), (digits >= 0) & (digits % 2 == 0))
    good &= np.where(is_fd, (sizes <= FD_DATA) & _IS_SIZE[np.clip(sizes, 0, 255)], sizes <= CLASSIC_DATA)
    good &= ~has_code | (~is_fd & (end - under == 2) & (code > 8) & (code < 16) & (sizes == CLASSIC_DATA))
    flags = HEX[lines.at(sharp + 2)]
    good &= ~is_fd | (flags < 16)
    marks = np.where(is_fd, flags, np.where(has_code, code, 0))
    ids = np.where(is_remote, ids | REMOTE, ids)
    data, is_hex = _data(lines, begin, np.where(is_remote | ~good, 0, sizes))
    columns = ids.astype(np.uint32), sizes.astype(np.uint8), marks.astype(np.uint8), is_fd, data
    return [*columns, good & is_hex & (sharp < end)]


def _data(lines: _Lines, begin: Ints, sizes: Ints) -> tuple[Octets, Flags]:
    """Return the data in hex digits from `begin` on, and which have none but such digits."""
    width = FD_DATA if len(sizes) and sizes.max() > CLASSIC_DATA else CLASSIC_DATA
    digits = HEX[lines.octets[begin[:, None] + np.arange(2 * width)]]
    digits[np.arange(2 * width) >= 2 * sizes[:, None]] = 0
    return digits[:, ::2] << 4 | digits[:, 1::2] & 15, (digits < 16).all(axis=1)


class Writer:
    """A writer of the log. `style` is that of `read`, which may still learn."""

    def __init__(self, file: BinaryIO, style: dict[str, Any]) -> None:
        self._file, self._style = file, style

    def add(self, frames: Frames) -> None:
        """Write frames."""
        self._file.write("".join(self._lines(frames)).encode())

    def close(self) -> None:
        """Do nothing: the log has no end of its own."""

    def _lines(self, frames: Frames) -> Iterator[str]:
        names, style = [interface_name(name) for name in frames.names], self._style
        directions = (" R", " T") if style.get("direction") else ("", "")
        bare, digits = ERROR if style.get("bare_errors") else 0, 9 if style.get("step_ns") == 1 else 6
        step = 10 ** (9 - digits)
        width = frames.data.shape[1] * 2
        text = frames.data.tobytes().hex().upper()
        columns = (column.tolist() for column in frames.columns[:-1])
        for at, (ts_ns, channel, is_sent, number, size, marks, is_fd) in enumerate(
            zip(*columns, strict=True)
        ):
            seconds, ns = divmod(ts_ns, 1_000_000_000)
            data = text[at * width : at * width + 2 * size]
            frame = compact(number, size, marks, is_fd, data)
            direction = "" if number & bare else directions[is_sent]
            yield f"({seconds:010}.{ns // step:0{digits}}) {names[channel]} {frame}{direction}\n"


def interface_name(name: str) -> str:
    """Return a name that an interface may have."""
    return _OTHER.sub("_", name)[:_NAME_CHARS] or "can"


def cut() -> Callable[[str], str]:
    """Return the function from names to those of interfaces."""
    return interface_name


def compact(number: int, size: int, marks: int, is_fd: bool, data: str) -> str:
    """Return a frame as `cansend` takes it; `data` are its hex digits."""
    wide = number & (EXTENDED | ERROR)
    head = f"{number & IDENTIFIER | number & ERROR:08X}" if wide else f"{number & IDENTIFIER:03X}"
    if is_fd:
        return f"{head}##{marks:X}{data}"
    code = f"_{marks:X}" if marks else ""
    if number & REMOTE:
        return f"{head}#R{size or ''}{code}"
    return f"{head}#{data}{code}"
