"""The attributes of a DBC that are read: names, cycle times and formats of frames. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from bridges.protocols.dbc.entries import Entry, Fault
from bridges.protocols.dbc.frames import safe

_FORMAT: Final = "VFrameFormat"
_CYCLE: Final = "GenMsgCycleTime"
_NUMERIC: Final = ("INT", "HEX", "FLOAT")
_TYPES: Final = {
    _CYCLE: _NUMERIC,
    _FORMAT: ("ENUM", "INT"),
    "SystemMessageLongSymbol": ("STRING",),
    "SystemSignalLongSymbol": ("STRING",),
    "SystemNodeLongSymbol": ("STRING",),
}
_FORMATS: Final = 16
_CYCLE_MAX: Final = 1e9
_TEXTS: Final = re.compile(r'"((?:\\"|[^"])*+)"')
_NUMBER: Final = re.compile(r"BA_\s+\"\w+\"\s+(?:BO_|SG_)\s+(\d{1,19})", re.ASCII)


class _Definition(NamedTuple):
    """A definition: its object, type and choices; these are texts. `places` has the first place of each."""

    about: str
    type: str
    choices: tuple[str, ...]
    places: Mapping[str, int]


class Attributes:
    """The attributes of a database: those that are read become lines again, of others only faults stay."""

    def __init__(self) -> None:
        self._defined, self._defaults = dict[str, _Definition](), dict[str, str]()
        self._refused, self._lines = set[str](), list[str]()
        self._faults, self._strange = list[Fault](), dict[str, list[Entry]]()

    def faults(self) -> Iterator[Fault]:
        """Yield what was wrong."""
        yield from self._faults
        for name, those in self._strange.items():
            more = f", and {len(those) - 1} more like it" if those[1:] else ""
            yield those[0].fault(f'no attribute "{name}" is defined{more}: left out')

    def lines(self) -> Iterator[str]:
        """Yield the entries that are read."""
        for name, one in self._defined.items():
            if name in _TYPES:
                texts = ",".join(f'"{choice}"' for choice in one.choices)
                rest = texts if one.type == "ENUM" else "0 0" if one.type in _NUMERIC else ""
                yield f'BA_DEF_ {one.about} "{name}" {one.type} {rest};'
                if (default := self._default(name, one)) is not None:
                    yield f'BA_DEF_DEF_ "{name}" {default};'
        yield from self._lines

    def _default(self, name: str, one: _Definition) -> str | None:
        """Return the default value of an attribute, if it has one that counts."""
        given = self._defaults.get(name)
        if given is None or _is_good(name, one, given, is_default=True):
            return "0" if given is None and (name, one.type) == (_FORMAT, "INT") else given
        return "0" if one.type == "INT" else None

    def define(self, entry: Entry) -> None:
        """Take a definition."""
        if entry.why:
            found = _TEXTS.search(entry.text)
            self._refused.add("" if found is None else found[1])
            return
        about, quoted, kind, rest = entry.parts
        name, choices = str(quoted)[1:-1], tuple(_TEXTS.findall(rest or ""))
        if kind not in _TYPES.get(name, (kind,)):
            self._refused.add(name)
            self._faults.append(entry.fault(f'"{name}" has another type than {_TYPES[name][0]}: left out'))
            return
        places = dict(zip(reversed(choices), range(len(choices) - 1, -1, -1), strict=True))
        self._defined[name] = _Definition(about or "", str(kind), choices, places)

    def default(self, entry: Entry) -> None:
        """Take a default value. The definition is known."""
        if entry.why:
            return
        quoted, value = entry.parts
        name = str(quoted)[1:-1]
        one = self._defined.get(name)
        self._defaults[name] = str(value)
        if (
            one is not None
            and name in _TYPES
            and value != '""'
            and not _is_good(name, one, str(value), is_default=True)
        ):
            self._faults.append(entry.fault("no value of this attribute: left out"))

    def take(self, entry: Entry, numbers: "dict[int, int]") -> None:
        """Take a value. `numbers` has the numbers of messages for those of the file."""
        if entry.why:
            found = _NUMBER.match(entry.text)
            number = None if found is None else numbers.get(int(found[1]))
            self._faults.append(entry.own_fault(number, blocks=_FORMAT in entry.text))
            return
        name = str(entry.parts[0])[1:-1]
        one = self._defined.get(name)
        if one is None and name not in self._refused:
            self._strange.setdefault(name, []).append(entry)
        elif one is not None and name in _TYPES:
            self._value(entry, name, one, numbers)

    def _value(self, entry: Entry, name: str, one: _Definition, numbers: "dict[int, int]") -> None:
        about, *words = re.findall(r"\w+", entry.parts[1] or "") or [""]
        number = numbers.get(int(words[0])) if about in ("BO_", "SG_") else None
        if number is None and about != "BU_":
            return
        given = str(entry.parts[-1])
        if one.type == "ENUM":
            given = str(one.places.get(given[1:-1], given))
        if not _is_good(name, one, given):
            why = "no value of this attribute: left out"
            self._faults.append(entry.fault(why, number, blocks=name == _FORMAT))
            return
        names = map(safe, words if number is None else words[1:])
        whole = ("BA_", f'"{name}"', about, "" if number is None else str(number), *names, given)
        self._lines.append(" ".join(word for word in whole if word) + ";")


def _is_good(name: str, one: _Definition, value: str, is_default: bool = False) -> bool:
    """Return whether a value is one of an attribute."""
    plain = value.strip('"')
    if name == _CYCLE:
        return _number(plain) is not None
    if name != _FORMAT:
        return value.startswith('"')
    if is_default and one.type == "ENUM":
        return plain in one.places
    most = _FORMATS if one.type == "INT" else len(one.choices)
    return plain.isascii() and plain.isdigit() and int(plain[:9]) < most


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found <= _CYCLE_MAX else None
