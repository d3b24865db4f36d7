"""The headings of tables of CAN frames: which column has what, by its name, as tools and people name them.

Sources: SavvyCAN (GVRET), python-can's CSVWriter, mdf2csv of CSS Electronics; others name columns alike. The
tables of HCRL's car-hacking sets have no heading, and are known by their rows. A name may tell a unit or a
base behind it: `Time [ms]`, `time_us`, `ID (hex)`. Pure.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

DELIMITERS: Final = b",;\t"
NS: Final = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
"""The units of times, in ns."""
_GAP: Final = "[ _./-]?"
_PARTS: Final = {"mic": "us", "m": "ms", "u": "us", "µ": "us", "μ": "us", "n": "ns", "s": "s"}
_IN: Final = rf"(?:{_GAP}[\[(]?((?:milli|micro|nano|m|u|n|µ|μ)?s(?:ec(?:ond)?s?)?)[\])]?)?"
_BASE: Final = rf"(?:{_GAP}[\[(]?(?:hex|dec)(?:imal)?[\])]?)?"
_BASE_OF: Final = re.compile(r"(hex|dec)(?:imal)?[\])]?$")
_IS: Final = f"(?:is{_GAP})?"
_BEFORE: Final = r"(?:\w{1,40}\.){1,2}"  # the group that a channel of a measurement is in
_PREFIX: Final = re.compile(_BEFORE)

NAMES: Final = {
    "time": rf"(?:(?:abs(?:olute)?|rel(?:ative)?|epoch|system|unix|date){_GAP})?time(?:{_GAP}stamps?)?"
            rf"(?:{_GAP}(?:epoch|abs(?:olute)?|rel(?:ative)?|offset|unix))?{_IN}|(?:epoch|ts|t|offset){_IN}",
    "id": rf"(?:(?:can|msg|message|frame|arb(?:itration)?|can{_GAP}msg){_GAP})?id(?:entifier)?{_BASE}"
          rf"|(?:can{_GAP})?addr(?:ess)?{_BASE}",
    "data": rf"(?:(?:can|frame|raw|hex|message|msg){_GAP})?(?:data|payload)"
            rf"(?:{_GAP}(?:bytes?|field|frame))?{_BASE}|bytes{_BASE}",
    "byte": rf"(?:d|b|db|data|byte|data{_GAP}byte){_GAP}\[?\d{{1,2}}\]?{_BASE}",
    "extended": rf"{_IS}(?:ext(?:ended)?|xtd|eff)(?:{_GAP}(?:id|frame|flag))?|ide",
    "remote": rf"{_IS}(?:remote|rtr)(?:{_GAP}(?:frame|flag))?",
    "error": rf"{_IS}err(?:or)?(?:{_GAP}(?:frame|flag))?",
    "direction": rf"dir(?:ection)?|rx{_GAP}tx|tx{_GAP}rx",
    "bus": rf"(?:can{_GAP})?(?:bus|chan(?:nel)?|chn?|interface|iface|port)"
           rf"(?:{_GAP}(?:id|no|nr|num(?:ber)?|chan(?:nel)?|name))?",
    "length": rf"(?:(?:data|payload){_GAP})?(?:len(?:gth)?|size)|(?:num|n){_GAP}bytes|byte{_GAP}count",
    "code": r"dlc",
    "fd": rf"edl|fdf|{_IS}(?:can{_GAP})?fd(?:{_GAP}frame)?",
    "switch": rf"{_IS}brs|bit{_GAP}rate{_GAP}switch",
    "state": rf"{_IS}esi|error{_GAP}state{_GAP}indicator",
}  # fmt: skip
"""The names of columns, by what is in them, as regular expressions for small letters."""
_KNOWN: Final = {role: re.compile(f"(?:{pattern})") for role, pattern in NAMES.items()}
_SIGN: Final = ",".join(("timestamp", "arbitration_id", "extended", "remote", "error", "dlc", "data"))


def _with(*roles: str) -> str:
    """Return a look ahead for a column of one of some sorts in a line."""
    names = "|".join(NAMES[role] for role in roles)
    return rf'(?=(?:[^\r\n]{{0,999}}?[,;\t])?[ "]*(?:{_BEFORE})?(?:{names})[ "]*(?:[,;\t]|\r?$))'


_ROW: Final = r"\d{10}\.\d{6},[0-9a-f]{3,8},[0-8](?:,[0-9a-f]{2}){0,8},[rt]\r?$"
"""A row of HCRL: time, identifier, length, that many bytes, and R, or T if it was an attack."""
_LABELLED: Final = re.compile(_ROW.encode(), re.I)
LOOKS: Final = f"(?i:^(?:{_with('time')}{_with('id')}{_with('data', 'byte')}|{_ROW}))".encode()
"""A line that is such a heading, or such a row."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: where each column is. `octets` are the first and the last column of data.

    `unit_ns`, `id_base` and `octet_base` are 0 where no name tells them. `first_bus` is the number of the
    first channel. `has_label`: the last cell of a row is none of data, wherever it stands.
    """

    line: bytes
    delimiter: bytes
    places: dict[str, int]
    octets: tuple[int, int]
    unit_ns: int = 0
    id_base: int = 0
    octet_base: int = 0
    is_base64: bool = False
    first_bus: int = 0
    has_label: bool = False

    @property
    def ends_with_data(self) -> bool:
        """Return whether nothing but data stands at the end of a line."""
        return self.octets[1] == max(*self.places.values(), self.octets[1])


def of_row(line: bytes) -> Heading | None:
    """Return the heading of a table of HCRL by its first row, None if that is another one."""
    if not _LABELLED.match(line):
        return None
    places = {"time": 0, "id": 1, "length": 2}
    return Heading(b"", b",", places, (3, 10), NS["s"], 16, 16, has_label=True)


def heading_of(line: bytes) -> Heading | None:
    """Return the heading that a line is, None if it has no columns of time, identifier and data."""
    for delimiter in DELIMITERS.decode():
        text = line.decode(errors="replace").rstrip("\r\n").lower()
        words = [_PREFIX.sub("", word.strip(' "'), count=1) for word in text.split(delimiter)]
        while words and not words[-1]:
            words.pop()
        if found := _heading(line, delimiter, words):
            return found
    return None


def _heading(line: bytes, delimiter: str, words: list[str]) -> Heading | None:
    places, octets = dict[str, int](), list[int]()
    for place, word in enumerate(words):
        for role in (role for role, known in _KNOWN.items() if known.fullmatch(word)):
            if role == "byte":
                octets.append(place)
            places.setdefault(role, place)
    octets = [places["data"]] if "data" in places and len(octets) < 2 else octets
    apart = octets and octets[-1] - octets[0] != len(octets) - 1
    is_lin = {"buschannel", "databytes"} <= set(words) and "ide" not in words
    if not octets or apart or is_lin or "time" not in places or "id" not in places:
        return None
    places = {role: place for role, place in places.items() if role not in ("data", "byte")}
    return _told(Heading(line, delimiter.encode(), places, (octets[0], octets[-1])), words)


def _told(found: Heading, words: list[str]) -> Heading:
    """Return a heading with what its names say, or the tool that writes such ones."""
    time, octet = words[found.places["time"]], words[found.octets[0]]
    unit_ns, id_base, octet_base = _unit_ns(time), _base(words[found.places["id"]]), _base(octet)
    if ",".join(words) == _SIGN:
        places = {"length" if role == "code" else role: place for role, place in found.places.items()}
        return replace(found, places=places, unit_ns=NS["s"], id_base=16, octet_base=16, is_base64=True)
    if {"buschannel", "databytes"} <= set(words):
        unit_ns, id_base = unit_ns or NS["s"], id_base or 16
        return replace(found, unit_ns=unit_ns, id_base=id_base, octet_base=octet_base, first_bus=1)
    if time == "time stamp" and octet == "d1" and "extended" in words:
        return replace(found, unit_ns=NS["us"], id_base=16, octet_base=16)
    return replace(found, unit_ns=unit_ns, id_base=id_base, octet_base=octet_base)


def _unit_ns(word: str) -> int:
    """Return the unit that the name of a column of time ends with, 0 if none."""
    found = _KNOWN["time"].fullmatch(word)
    unit = next(filter(None, found.groups()), "") if found else ""
    return next((NS[name] for part, name in _PARTS.items() if unit.startswith(part)), 0)


def _base(word: str) -> int:
    found = _BASE_OF.search(word)
    return 0 if found is None else 16 if found[1] == "hex" else 10
