"""A DBC as cantools reads it: what is wrong is mended or left out, each with a line. Pure.

Mended is only what has one meaning. An entry that is left out takes with it what is in doubt without it: the
signals of a message, those of the pages of a multiplexer, and a signal of which it is not known how its bits
are to be read. Comments, and attributes that nobody here reads, are looked at and not handed on. All of this
is one pass over the text, and cantools parses the rest once.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from bridges.protocols.dbc.attributes import Attributes
from bridges.protocols.dbc.entries import KEYWORDS, STRANGE, Entry, Fault, entries
from bridges.protocols.dbc.frames import MARKED, Frame, Frames, safe

_LINES_SHOWN: Final = 4
_IDS_MAX: Final = 1 << 16
_ALL_IDS_MAX: Final = 1 << 21
_TYPES: Final = ("0", "1", "2")
_ABOUT: Final = re.compile(r"\w+\s+(\d{1,19})\s+(\w+)", re.ASCII)
_RANGE: Final = re.compile(r"(\d+)[^\d-]*-[^\d-]*(\d+)", re.ASCII)


class Mended(NamedTuple):
    """A text for cantools, and what was wrong in that of the file, of which `messages` are left."""

    text: str
    faults: Sequence[Fault]
    messages: int


def mended(text: str) -> Mended:
    """Return a DBC without what is wrong in it."""
    found = list(entries(text))
    if not found:
        return Mended("", [Fault(1, "line 1: it has no entries")], 0)
    marked = {int(entry.parts[0] or 0) for entry in found if entry.kind == "BO_" and entry.parts}
    work = _Work(Frames({number for number in marked if number & MARKED}))
    work.take(found)
    return Mended("\n".join(work.lines()), _joined(work.told()), len(work.frames.all))


def _joined(told: Iterable[Fault]) -> list[Fault]:
    """Return faults in the order of their lines; what was mended alike is one of them."""
    found, like = list[Fault](), dict[str, list[int]]()
    for fault in sorted(told, key=lambda fault: fault.line):
        if fault.like not in like:
            found.append(fault)
        if fault.like:
            like.setdefault(fault.like, []).append(fault.line)
    return [fault._replace(text=fault.text + _also(like.get(fault.like, ())[1:])) for fault in found]


def _also(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    more = f" and {len(lines) - _LINES_SHOWN} more" if lines[_LINES_SHOWN:] else ""
    return f"; so lines {', '.join(map(str, lines[:_LINES_SHOWN]))}{more}"


class _Work:
    """The pass over the entries of a file."""

    def __init__(self, frames: Frames) -> None:
        self.frames, self._attributes = frames, Attributes()
        self._faults, self._settled = list[Fault](), list[Fault]()
        self._nodes, self._tail = "", list[str]()
        self._ids = 0

    def take(self, found: Iterable[Entry]) -> None:
        """Take all entries: first those that others are about."""
        later, takes = dict[str, list[Entry]](), {"BO_": self.frames.message, "SG_": self.frames.signal}
        for entry in found:
            if entry.kind == STRANGE or (
                entry.why and entry.kind.endswith("_") and entry.kind not in KEYWORDS
            ):
                self.frames.strange(entry)
                continue
            if take := takes.get(entry.kind):
                take(entry)
            else:
                later.setdefault(entry.kind, []).append(entry)
            if entry.note or (entry.why and entry.kind not in _OWN):
                self._faults.append(entry.mended(entry.note) if entry.note else entry.own_fault())
        for take, kind in (
            (self._node, "BU_"),
            (self._attributes.define, "BA_DEF_"),
            (self._attributes.default, "BA_DEF_DEF_"),
            (self._type, "SIG_VALTYPE_"),
            (self._pages, "SG_MUL_VAL_"),
        ):
            for entry in later.get(kind, ()):
                take(entry)
        self._settled += (fault for frame in self.frames.all for fault in frame.settle())
        for entry in later.get("BA_", ()):
            self._attributes.take(entry, self.frames.numbers)
        for take, kind in ((self._texts, "VAL_"), (self._senders, "BO_TX_BU_")):
            for entry in later.get(kind, ()):
                take(entry)

    def told(self) -> Iterator[Fault]:
        """Yield all that was wrong."""
        yield from (*self._faults, *self.frames.faults, *self._settled, *self._attributes.faults())

    def lines(self) -> Iterator[str]:
        """Yield the lines for cantools."""
        yield 'VERSION ""'
        yield f"BU_: {self._nodes}"
        for frame in self.frames.all:
            yield from frame.lines()
        for frame in self.frames.all:
            yield from frame.tail()
        yield from self._tail
        yield from self._attributes.lines()
        yield ""

    def _node(self, entry: Entry) -> None:
        if not entry.why:
            self._nodes = " ".join(map(safe, re.findall(r"\w+", entry.parts[0] or "")))

    def _type(self, entry: Entry) -> None:
        if (found := self._signal(entry)) is None:
            return
        frame, name = found
        _, _, colon, kind = entry.parts
        if not colon:
            self._faults.append(entry.mended("it has no colon"))
        why = "" if kind in _TYPES else f"no type of a signal is {kind}"
        self._tell(entry, frame, name, f"SIG_VALTYPE_ {frame.number} {safe(name)} : {kind};", why)

    def _pages(self, entry: Entry) -> None:
        if (found := self._signal(entry)) is None:
            return
        (frame, name), above = found, str(entry.parts[2])
        ranges = [(int(low), int(high)) for low, high in _RANGE.findall(str(entry.parts[3]))]
        texts = ", ".join(f"{low}-{high}" for low, high in ranges)
        text = f"SG_MUL_VAL_ {frame.number} {safe(name)} {safe(above)} {texts};"
        if text in frame.about.get(name, ()):
            return
        self._mark(frame, above)
        if self._tell(entry, frame, name, text, self._refusal(frame, name, above, ranges)):
            for part in frame.parts[name]:
                part.above = above

    def _mark(self, frame: Frame, above: str) -> None:
        """Mark a signal that chooses pages, if it has the mark of one that is chosen, and none chooses."""
        parts = frame.parts.get(above, ())
        if len(parts) == 1 and parts[0].mark == "m" and not frame.has_choosers:
            frame.choose(parts[0])
            words = "another entry says that it chooses pages: read as a multiplexer"
            self._faults.append(parts[0].entry.mended(words, frame.number))

    def _tell(self, entry: Entry, frame: Frame, name: str, text: str, why: str) -> bool:
        """Keep what says how a signal is read; leave out the signal if that is in doubt."""
        known = frame.about.setdefault(name, [])
        if not why and any(one != text and one.startswith(entry.kind) for one in known):
            why = "another entry says otherwise"
        if why:
            self.frames.drop(entry, int(entry.parts[0] or 0), name, why)
        elif text not in known:
            known.append(text)
        return not why

    def _refusal(self, frame: Frame, name: str, above: str, ranges: Sequence[tuple[int, int]]) -> str:
        """Return why it is not known on which pages a signal is; "" if it is."""
        parts = frame.parts
        if above == name or not any(part.mark.endswith("M") for part in parts.get(above, ())):
            return f"no multiplexer is {above}"
        if not all(part.mark for part in parts[name]):
            return f"{name} has no mark of a multiplexer"
        ids = sum(high - low + 1 for low, high in ranges if low <= high)
        self._ids += ids
        if ids > _IDS_MAX or self._ids > _ALL_IDS_MAX:
            return f"{ids} pages are too many"
        return "" if all(low <= high for low, high in ranges) else "a range ends before it begins"

    def _signal(self, entry: Entry) -> tuple[Frame, str] | None:
        """Return of which signal an entry is that says how its bits are read; None if it has none.

        Of one that is not understood the signal is left out.
        """
        found = _ABOUT.match(entry.text)
        if entry.why:
            if found is None:
                self._faults.append(entry.own_fault())
            else:
                self.frames.drop(entry, int(found[1]), found[2], entry.why)
            return None
        return self._known(entry, int(entry.parts[0] or 0), str(entry.parts[1]))

    def _known(self, entry: Entry, given: int, name: str) -> tuple[Frame, str] | None:
        frame = self.frames.of(given)
        if frame is not None and name in frame.parts:
            return frame, name
        if not self.frames.is_gone(given, name):
            words = f"line {entry.line}: {entry.kind} {given} {name}: no message has this signal"
            self._faults.append(Fault(entry.line, words))
        return None

    def _texts(self, entry: Entry) -> None:
        """Take the texts of a signal; those of a variable of the environment are of none."""
        given = entry.parts[0] if entry.parts else None
        found = None if given is None else self._known(entry, int(given), str(entry.parts[1]))
        if found is None:
            return
        (frame, name), texts = found, str(entry.parts[2])
        known = frame.about.setdefault(name, [])
        text = f"VAL_ {frame.number} {safe(name)} {texts};"
        others = [one for one in known if not one.startswith("VAL_")]
        if others != known and text not in known:
            self._faults.append(entry.fault("the signal has texts already: the last are read", frame.number))
        frame.about[name] = [*others, text]

    def _senders(self, entry: Entry) -> None:
        frame = self.frames.of(int(entry.parts[0] or 0)) if entry.parts else None
        if frame is not None:
            names = ",".join(map(safe, re.findall(r"\w+", str(entry.parts[1]))))
            self._tail.append(f"BO_TX_BU_ {frame.number} : {names};")


_OWN: Final = frozenset(("BO_", "SG_", "BA_", "SIG_VALTYPE_", "SG_MUL_VAL_"))
"""The kinds of which something else tells why they are left out."""
