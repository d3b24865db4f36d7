"""The fields of sentences of NMEA 0183 that are values, with their units. Pure.

Source: the fields of each sentence as gpsd has them (https://gpsd.gitlab.io/gpsd/NMEA.html).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple


class Field(NamedTuple):
    """A field of a sentence: its `place`, from 1, its name and its unit, "" if it has none.

    A latitude or a longitude is followed by its side.
    """

    place: int
    name: str
    unit: str = ""


LAT: Final = "lat"
LON: Final = "lon"
STATUS: Final = "status"
QUALITY: Final = "quality"
_TABLE: Final = {
    "GGA": "2 lat deg, 4 lon deg, 6 quality, 7 satellites, 8 hdop, 9 altitude m, 11 geoid m",
    "RMC": "2 status, 3 lat deg, 5 lon deg, 7 speed kn, 8 course deg",
    "GLL": "1 lat deg, 3 lon deg, 6 status",
    "VTG": "1 course deg, 5 speed kn, 7 speed_kmh km/h",
    "HDT": "1 heading deg",
    "HDM": "1 heading deg",
    "HDG": "1 heading deg",
    "ROT": "1 rate deg/min",
    "DBT": "3 depth m",
    "DPT": "1 depth m, 2 offset m",
    "MTW": "1 temperature degC",
    "MWV": "1 angle deg, 3 speed, 5 status",
    "VHW": "1 heading deg, 5 speed kn",
    "GSA": "2 fix, 15 pdop, 16 hdop, 17 vdop",
    "RSA": "1 rudder deg",
}


def _fields(row: str) -> Iterator[Field]:
    for words in (one.split() for one in row.split(", ")):
        yield Field(int(words[0]), *words[1:])


SENTENCES: Final[Mapping[str, tuple[Field, ...]]] = {
    kind: tuple(_fields(row)) for kind, row in _TABLE.items()
}
"""The fields of each type of sentence."""

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})")  # zeros may be left out
_TEXT_MAX: Final = 32  # a status is a letter, and a longer text no value
_ANGLE: Final = re.compile(r"([0-9]{1,3})([0-5][0-9](?:\.([0-9]{1,9}))?)")
_SIDES: Final = {LAT: ("N", "S", 90), LON: ("E", "W", 180)}


def values(kind: str, fields: Sequence[str]) -> Iterator[tuple[Field, Decimal | str]]:
    """Yield what the fields behind the address of a sentence say.

    An empty field has no value. Where the status is not A, or the quality of a place is 0, only these say
    something: a receiver that has lost its satellites may repeat its last place.
    """
    known = [(one, fields[one.place - 1]) for one in SENTENCES.get(kind, ()) if one.place <= len(fields)]
    is_valid = all(text == "A" for one, text in known if one.name == STATUS)
    is_valid &= not any(text == "0" for one, text in known if one.name == QUALITY)
    for one, text in known:
        if (is_valid or one.name in (STATUS, QUALITY)) and text:
            value = _place(one, text, fields) if one.name in _SIDES else _value(text)
            if value is not None:
                yield one, value


def _value(text: str) -> Decimal | str | None:
    if _NUMBER.fullmatch(text):
        return Decimal(text)
    return text if len(text) <= _TEXT_MAX else None


def _place(field: Field, text: str, fields: Sequence[str]) -> Decimal | None:
    """Return degrees and minutes with their side as degrees, with two digits more than the minutes have; None
    if they are none."""
    plus, minus, most = _SIDES[field.name]
    side, found = "".join(fields[field.place : field.place + 1]), _ANGLE.fullmatch(text)
    if found is None or side not in (plus, minus):
        return None
    digits = len(found[3] or "") + 2
    whole = round((Decimal(found[1]) * 60 + Decimal(found[2])) / 60, digits)
    if whole > most:
        return None
    return -whole if side == minus and whole else whole
