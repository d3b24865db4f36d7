"""Reading of databases of CAN messages: DBC, KCD and SYM, by cantools."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bridges.items import EXTENDED
from bridges.protocols.dbc.compiled import fits
from bridges.protocols.dbc.entries import Fault
from bridges.protocols.dbc.frames import MARKED, plain_name
from bridges.protocols.dbc.j1939.pgn import NULL
from bridges.protocols.dbc.j1939.transport import BYTES_MAX
from bridges.protocols.dbc.kcd import mended_kcd
from bridges.protocols.dbc.layout import BITS_MAX, Database, Flaw, Message, Signal
from bridges.protocols.dbc.mended import mended
from bridges.protocols.dbc.overlaps import overlaps
from bridges.protocols.dbc.sym import TRIES, mended_sym, without
from bus.machine.files import encoding_of, read_bytes
from bus.machine.touch import touching
from bus.text import MARK

if TYPE_CHECKING:
    from cantools.database.can import Database as CanDatabase

FORMATS: Final = ("dbc", "kcd", "sym")
FILE_BYTES: Final = 32 << 20
_SIZE_MAX, _TEXT_MAX, _LARGE = 64, 255, 1e100
_SAID_MAX: Final = 120
_PLACE: Final = re.compile(r"\bline (\d+)(?:, column (\d+))?")
_COLUMN: Final = re.compile(r": column (\d+):")
_NAMED: Final = re.compile(r"in message (\w+)")
_VERSION: Final = re.compile(r"^FormatVersion=(\d{1,3}(?:\.\d{1,3})?)", re.MULTILINE)
_NONE: Final = re.compile(r"VECTOR__(XXX|INDEPENDENT_SIG_MSG)")


class Unreadable(ValueError):
    """The reason why a database cannot be read, and its place: line and column from 1, 0 if not known."""

    def __init__(self, text: str, line: int = 0, column: int = 0) -> None:
        super().__init__(text)
        self.line, self.column = line, column


def read(path: str, is_j1939: bool | None = None) -> Database:
    """Return what a file has. It is read again only if it has changed.

    `is_j1939`: whether extended messages are J1939; None: if the file says so, or they look so.
    Raises OSError, ImportError without cantools, and `Unreadable`.
    """
    with touching(path):
        known = Path(path).stat()
    return _read(path, is_j1939, known.st_mtime_ns, known.st_size)


@lru_cache(maxsize=16)
def _read(path: str, is_j1939: bool | None, changed_ns: int, size: int) -> Database:
    form = Path(path).suffix[1:].lower()
    if form not in FORMATS:
        raise Unreadable(f"its name ends with none of .{', .'.join(FORMATS)}")
    return load(_text(read_bytes(path, FILE_BYTES), form), form, is_j1939)


def _text(data: bytes, form: str) -> str:
    """Return the text of a file: UTF-8, or else the code page of the tools that write DBC and SYM.

    Raises `Unreadable` for a file without text, and for one in another encoding.
    """
    if not data.removeprefix(MARK).strip():
        raise Unreadable("it is empty: copy the database anew")
    if found := encoding_of(data) or (b"\0" in data and "no text, or UTF-16 without a mark"):
        raise Unreadable(f"it is {found}: save it as UTF-8", 1, 1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("utf-8" if form == "kcd" else "cp1252", errors="replace")


def load(text: str, form: str, is_j1939: bool | None = None) -> Database:
    """Return what a text has. `is_j1939` is that of `read`.

    Raises ImportError without cantools, and `Unreadable`.
    """
    from cantools.database import load_string

    # what it warns of is told by `check`, as flaws
    logging.getLogger("cantools.database.can.database").setLevel(logging.ERROR)
    given, faults, flaws = _given(text, form)
    for left in reversed(range(TRIES if form == "sym" else 1)):
        try:
            found: Any = load_string(given, form, strict=False)
            return _database(found, is_j1939, faults, flaws)
        except Exception as error:  # of cantools, or one that slipped through it
            rest = without(given, str(error)) if left else None
            if rest is None:
                raise _explained(error, text, form) from error
            given, flaws = rest[0], [*flaws, *rest[1]]
    raise AssertionError("the last try returns or raises")


def _given(text: str, form: str) -> tuple[str, Sequence[Fault], list[Flaw]]:
    """Return a text for cantools, and what was wrong in it, by identifiers and by names of messages."""
    if form == "dbc":
        return *_mended(text), []
    if form == "kcd":
        given, flaws = mended_kcd(text)
        return given, (), flaws
    version = _VERSION.search(text)
    if version is not None and not version[1].startswith("6.0"):
        line = text.count("\n", 0, version.start()) + 1
        raise Unreadable(f"it is SYM {version[1]}: save it as version 6.0", line, 1)
    return mended_sym(text), (), []


def _mended(text: str) -> tuple[str, Sequence[Fault]]:
    """Return a DBC without what is wrong in it, and that. Raises `Unreadable` if nothing is left."""
    found = mended(text)
    if not found.messages and found.faults:
        first = found.faults[0]
        place = _COLUMN.search(first.text)
        raise Unreadable(
            f"no message in it can be read: {first.text}", first.line, int(place[1]) if place else 1
        )
    return found.text, found.faults


def _explained(error: Exception, text: str, form: str) -> Unreadable:
    cause = getattr(error, f"e_{form}", None) or error
    said = " ".join(str(cause).split())[:_SAID_MAX] or type(cause).__name__
    place = _PLACE.search(said)
    if place is None:
        return Unreadable(f"no {form.upper()}: {said}", _line_of(said, text))
    # the column of XML begins with 0
    line, column = int(place[1]), int(place[2] or 0) + (form == "kcd")
    return Unreadable(f"no {form.upper()}: {said}", line, column)


def _line_of(said: str, text: str) -> int:
    """Return the line of the message that an error names; 0 if it names none."""
    named = _NAMED.search(said)
    if named is None:
        return 0
    wanted = re.compile(rf"\s*(BO_\s+\d+\s+{named[1]}\b|\[{named[1]}\]|.*\bname=.{named[1]}\W)")
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if wanted.match(line)), 0)


def _database(
    found: "CanDatabase", is_j1939: bool | None, faults: Sequence[Fault], known: Sequence[Flaw]
) -> Database:
    messages, identifiers, flaws = dict[str, Message](), dict[int, str](), [*known]
    if is_j1939 is None and _look_like_j1939(found.messages):
        is_j1939 = True
    for one in found.messages:
        name = plain_name(str(one.name))
        if _NONE.fullmatch(name):
            continue
        message = _message(one, is_j1939, flaws)
        if text := _refusal(message, identifiers):
            flaws.append(Flaw(text, name))
            continue
        message = _named_apart(message, messages)
        if message.name != name:
            flaws.append(
                Flaw(f"{name}: several messages have this name: one is read as {message.name}", name)
            )
        messages[message.name], identifiers[message.identifier] = message, message.name
        flaws += (Flaw(text, message.name, blocks=True) for text in overlaps(message))
    losses, mends = (
        [
            Flaw(one.text, _named(one, identifiers), one.blocks)
            for one in faults
            if bool(one.like) is is_mended
        ]
        for is_mended in (False, True)
    )
    return Database(messages, tuple(plain_name(node.name) for node in found.nodes), (*losses, *flaws, *mends))


def _look_like_j1939(messages: Iterable[Any]) -> bool:
    """Return whether all extended messages have the source 254, which no sender has: databases of J1939
    write it where any source may stand, and some do not say otherwise what they are."""
    extended = [one for one in messages if one.is_extended_frame]
    return bool(extended) and all(one.frame_id & 0xFF == NULL for one in extended)


def _named(fault: Fault, identifiers: Mapping[int, str]) -> str:
    """Return the name of the message that a fault of a DBC is about; "" if it is of none."""
    number = -1 if fault.number is None else fault.number
    return identifiers.get(number & ~MARKED | (EXTENDED if number & MARKED else 0), "")


def _named_apart(message: Message, others: Mapping[str, Message]) -> Message:
    """Return a message, with its identifier behind its name as long as another one has that."""
    mark = "x" if message.is_extended else ""
    while message.name in others:
        message = replace(message, name=f"{message.name}_0x{message.id:x}{mark}")
    return message


def _refusal(message: Message, identifiers: Mapping[int, str]) -> str:
    """Return why a message is left out; "" if it is not."""
    name, size = message.name, message.size
    if message.identifier in identifiers:
        return f"{name} has the identifier of {identifiers[message.identifier]}, which alone is read"
    if size > (BYTES_MAX if message.is_j1939 else _SIZE_MAX):
        return f"{name}: {size} bytes are more than a frame has: left out"
    return ""


def _message(one: Any, is_j1939: bool | None, flaws: list[Flaw]) -> Message:
    name, size = plain_name(str(one.name)), int(one.length)
    by_pgn = bool(one.is_extended_frame) and (one.protocol == "j1939" if is_j1939 is None else is_j1939)
    return Message(
        name,
        one.frame_id,
        size,
        tuple(_signals(one.signals, name, size, flaws)),
        bool(one.is_extended_frame),
        bool(one.is_fd) or (size > 8 and not by_pgn),
        tuple(plain_name(sender) for sender in one.senders if not _NONE.fullmatch(sender)),
        int(one.cycle_time or 0),
        by_pgn,
    )


def _signals(given: Iterable[Any], message: str, size: int, flaws: list[Flaw]) -> Iterator[Signal]:
    seen = set[str]()
    for signal in map(_signal, given):
        if text := _fault(signal, size) or ("is there twice" if signal.name in seen else ""):
            flaws.append(Flaw(f"{message}/{signal.name} {text}: left out", message, blocks=True))
        else:
            seen.add(signal.name)
            yield signal


def _fault(signal: Signal, size: int) -> str:
    if not fits(signal, size):
        return f"lies outside of the {size} bytes of the message"
    if signal.is_float and signal.bits not in (16, 32, 64):
        return f"is a float of {signal.bits} bits"
    if signal.bits > BITS_MAX:
        return f"has {signal.bits} bits"
    if not signal.scale:
        return "has no factor"
    if not abs(signal.scale) < _LARGE or not abs(signal.offset) < _LARGE:
        return "has a factor or an offset that is too large"
    if max(map(len, signal.choices.values()), default=0) > _TEXT_MAX or len(signal.unit) > _TEXT_MAX:
        return f"has a text above {_TEXT_MAX} characters"
    return ""


def _signal(one: Any) -> Signal:
    scale, offset = _whole(one.scale, one.offset, one.is_float)
    return Signal(
        plain_name(str(one.name)),
        int(one.start),
        int(one.length),
        one.byte_order == "big_endian",
        bool(one.is_signed) and not one.is_float,
        bool(one.is_float),
        scale,
        offset,
        one.minimum,
        one.maximum,
        str(one.unit or ""),
        {int(raw): str(name) for raw, name in (one.choices or {}).items()},
        bool(one.is_multiplexer),
        plain_name(str(one.multiplexer_signal or "")),
        None if one.multiplexer_ids is None else frozenset(one.multiplexer_ids),
    )


def _whole(scale: float, offset: float, is_float: bool) -> tuple[float, float]:
    """Return factor and offset as integers if both are, so that large integers stay exact."""
    if not is_float and all(isfinite(one) and float(one).is_integer() for one in (scale, offset)):
        return int(scale), int(offset)
    return scale, offset
