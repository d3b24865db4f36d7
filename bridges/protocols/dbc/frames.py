"""The messages of a DBC while it is mended: what is left out, and what is in doubt without it. Pure."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from bridges.items import IDENTIFIER, STANDARD_MAX
from bridges.protocols.dbc.entries import KEYWORDS, Entry, Fault
from bridges.protocols.dbc.j1939.transport import BYTES_MAX
from bridges.protocols.dbc.layout import BITS_MAX

MARKED: Final = 1 << 31
PREFIX: Final = "Renamed__"
"""The prefix of a name that cantools does not take as one."""

_DEPTH_MAX: Final = 16
_UNREAD: Final = re.compile(r"VECTOR__INDEPENDENT_SIG_MSG")
_NUMBERED: Final = re.compile(r"BO_\s+(\d{1,19})", re.ASCII)
_NAMED: Final = re.compile(r"SG_\s+(\w+)", re.ASCII)
_CHOOSES: Final = re.compile(r"\s(?:M|m\d*M)\b", re.ASCII)


@dataclass(slots=True)
class Part:
    """A signal: its entry, its mark of a multiplexer, and its text for cantools. `above` is the signal that
    chooses it, where an entry says so."""

    name: str
    entry: Entry
    mark: str
    text: str
    above: str = ""


@dataclass(slots=True)
class Frame:
    """A message and its signals, with the entries `about` each. `lost` are the names of those that were left
    out; `is_torn`: one of them may choose others. `has_choosers`: one has the mark of a multiplexer."""

    number: int
    name: str
    head: str
    parts: dict[str, list[Part]] = field(default_factory=dict)
    about: dict[str, list[str]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    is_torn: bool = False
    has_choosers: bool = False

    def __iter__(self) -> Iterator[Part]:
        return (part for parts in self.parts.values() for part in parts)

    def drop(self, name: str) -> None:
        """Leave out a signal."""
        self.is_torn |= any(part.mark.endswith("M") for part in self.parts.pop(name, ()))
        self.lost.add(name)

    def choose(self, part: Part) -> None:
        """Have a signal choose pages."""
        part.mark, part.text = "M", part.text.replace(f" {part.mark} : ", " M : ", 1)
        self.has_choosers = True

    def settle(self) -> Iterator[Fault]:
        """Leave out signals of which it is not known on which pages they are, and yield their faults."""
        choosing = {part.name for part in self if part.mark.endswith("M")}
        doubtful = [part for part in self if self._is_doubtful(part, choosing)]
        for part in doubtful:
            self.drop(part.name)
            yield self.fault(part, "its page is not given: left out")
        if self.is_torn:
            for part in [part for part in self if part.mark.startswith("m") or part.above]:
                self.drop(part.name)
                yield self.fault(part, "what chooses it is left out, and it too")
            return
        for part in self:
            is_chosen = part.above or (len(choosing) == 1 and part.name not in choosing)
            if part.mark[:1] == "m" and not is_chosen and choosing != {part.name}:
                yield self.fault(part, "no signal chooses its page: it is read from every frame")

    def _is_doubtful(self, part: Part, choosing: Collection[str]) -> bool:
        """Return whether a page has no number, or signals choose each other in a circle."""
        if part.mark == "m" and len(choosing) == 1:
            return True
        for _ in range(_DEPTH_MAX):
            if part.above not in self.parts:
                return False
            part = self.parts[part.above][0]
        return True

    def fault(self, part: Part, words: str) -> Fault:
        """Return a fault of a signal, which blocks the message."""
        return part.entry.fault(words, self.number, blocks=True)

    def lines(self) -> Iterator[str]:
        """Yield its lines for cantools."""
        yield self.head
        yield from (part.text for part in self)

    def tail(self) -> Iterator[str]:
        """Yield the lines for cantools that are about its signals."""
        yield from (text for name in self.parts for text in self.about.get(name, ()))


class Frames:
    """The messages of a file, in their order. `numbers` has their numbers for those that the file has.

    `marked` are the identifiers that the file itself marks as extended.
    """

    def __init__(self, marked: Collection[int] = ()) -> None:
        self._marked = marked
        self.all, self.faults = list[Frame](), list[Fault]()
        self.numbers, self._gone = dict[int, int](), set[int]()
        self._first = dict[int, Frame]()
        self._frame: Frame | None = None
        self._is_told = False

    def of(self, number: int) -> Frame | None:
        """Return the message with a number of the file."""
        return self._first.get(number)

    def is_gone(self, number: int, name: str) -> bool:
        """Return whether it was told that a signal, or its message, is left out."""
        frame = self._first.get(number)
        return number in self._gone if frame is None else name in frame.lost

    def message(self, entry: Entry) -> None:
        """Take a message: the signals that follow are its own, or are left out with it."""
        self._frame, self._is_told = None, True
        if entry.why:
            found = _NUMBERED.match(entry.text)
            self._lose(entry, "" if found is None else found[1], entry.why)
            return
        given, name, size, sender = entry.parts
        number = int(given or 0)
        if _UNREAD.fullmatch(str(name)):
            self._gone.add(number)
        elif int(str(size)) > BYTES_MAX:
            self._lose(entry, str(given), f"{size} bytes are more than a message has")
        else:
            self._identified(entry, number, f"{safe(str(name))}: {size} {safe(sender or 'Vector__XXX')}")

    def _lose(self, entry: Entry, number: str, why: str) -> None:
        self.faults.append(entry.fault(f"{why}: left out, with its signals"))
        if number:
            self._gone.add(int(number))

    def _identified(self, entry: Entry, given: int, rest: str) -> None:
        number, name = given, str(entry.parts[1])
        if STANDARD_MAX < given <= IDENTIFIER:
            number |= MARKED
        elif given & ~MARKED > (IDENTIFIER if given & MARKED else STANDARD_MAX):
            self._lose(entry, str(given), f"0x{given:X} has bits that no identifier has")
            return
        if number != given and number in self._marked:
            self._lose(entry, str(given), "its identifier is extended, and another message has it")
            return
        if number != given:
            words = "its identifier is extended, and not marked so: read as extended"
            self.faults.append(entry.mended(words, number))
        if _is_odd(name):
            self.faults.append(entry.mended("its name is none of DBC: read as it is", number))
        self._frame = Frame(number, name, f"BO_ {number} {rest}")
        self.all.append(self._frame)
        self.numbers.setdefault(given, number)
        self._first.setdefault(given, self._frame)

    def signal(self, entry: Entry) -> None:
        """Take a signal of the message before it."""
        frame = self._frame
        if frame is None:
            if not self._is_told:
                self.faults.append(entry.fault("it is not known of which message it is: left out"))
            return
        found = _NAMED.match(entry.text)
        if entry.why:
            self.faults.append(entry.own_fault(frame.number, blocks=True))
            frame.is_torn |= _CHOOSES.search(entry.text) is not None
            frame.lost.add("" if found is None else found[1])
            return
        self._whole(frame, entry)

    def strange(self, entry: Entry) -> None:
        """Take lines that may have been a message or signals: what follows is of no message that is known."""
        frame, self._frame, self._is_told = self._frame, None, False
        number = None if frame is None else frame.number
        self.faults.append(entry.own_fault(number, blocks=frame is not None))

    def _whole(self, frame: Frame, entry: Entry) -> None:
        name, mark, start, bits, order, sign, *numbers, unit, _ = (part or "" for part in entry.parts)
        if not 0 < int(bits) <= BITS_MAX or int(start) >= 8 * BYTES_MAX:
            self.faults.append(
                entry.fault(f"a signal of {bits} bits at {start}: left out", frame.number, True)
            )
            frame.is_torn |= mark.endswith("M")
            frame.lost.add(name)
            return
        if _is_odd(name):
            self.faults.append(entry.mended("its name is none of DBC: read as it is", frame.number))
        factor, offset, low, high = map(_number, numbers)
        text = (
            f" SG_ {safe(name)} {mark} : {start}|{bits}@{order}{sign} ({factor},{offset}) [{low}|{high}] "
            f"{unit} Vector__XXX"
        )
        frame.has_choosers |= mark.endswith("M")
        frame.parts.setdefault(name, []).append(Part(name, entry, mark, text))

    def drop(self, entry: Entry, number: int, name: str, why: str) -> None:
        """Leave out a signal of which an entry is in doubt."""
        frame = self._first.get(number)
        if frame is not None and name in frame.parts:
            frame.drop(name)
            self.faults.append(entry.fault(f"{why}: the signal is left out", frame.number, True))
        elif not self.is_gone(number, name):
            self.faults.append(entry.fault(f"{why}: left out", None if frame is None else frame.number, True))


def _is_odd(name: str) -> bool:
    """Return whether cantools does not take a word as a name."""
    return name[:1].isdigit() or name in KEYWORDS


def safe(name: str) -> str:
    """Return a name as cantools takes it."""
    return f"{PREFIX}{name}" if _is_odd(name) else name


def plain_name(name: str) -> str:
    """Return a name as the file has it."""
    own = name.removeprefix(PREFIX)
    return own if _is_odd(own) else name


def _number(text: str) -> str:
    """Return a number as cantools reads it: with a digit before the point."""
    return re.sub(r"^([-+]?)\.", r"\g<1>0.", text)
