"""The protocol that bytes look like: what is proposed for a device that nobody has described yet. Pure."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from bridges.media.uart.codec import Decoder
from bridges.protocols.crc16 import crc16
from bridges.protocols.nmea.protocol import TYPES
from bridges.protocols.nmea.sentences import checksum
from bridges.protocols.nmea.sentences import parse as sentence_of
from bridges.protocols.p1.telegram import UNCHECKED
from bridges.protocols.vedirect.labels import TEXTS, UNITS
from bridges.protocols.vedirect.text import END, Plain
from bridges.protocols.xbee.api import EscapedFrames, Frames
from bridges.protocols.xbee.packets import parse

_SENTENCE: Final = re.compile(rb"[$!]([A-Z][A-Z0-9]{2,9})(,[ -#%-)+-~]*+)\*([0-9A-Fa-f]{2})[\r\n]")
_OBIS: Final = re.compile(
    rb"\n(?:\d-\d{1,3}:)?[0-9A-Z]{1,3}\.[0-9A-Z]{1,3}\.[0-9]{1,3}(?:[*&]\d{1,3})?\([ -~]*\)(?=\r?\n)"
)
_FIELD: Final = re.compile(rb"\n([A-Za-z][A-Za-z0-9_#]{0,9})\t[ -~]{0,40}\r")
_FIELDS_MIN: Final = 3
_TEXT: Final = bytes((9, 10, 13, *range(32, 127)))
_READABLE: Final = 0.9  # share of characters in what counts as text
_ENDS: Final = re.compile(rb"[\r\n]")
_SLIP_END: Final = b"\xc0"
_UBX: Final = b"\xb5\x62"
_MAVLINK: Final = {0xFD: 12, 0xFE: 8}  # first byte of a message, and the bytes beside its payload
_CHAIN_MIN: Final = 3
_RTU_BYTES_MIN, _RTU_BYTES_MAX = 4, 256
_SAMPLE_BYTES: Final = 4096
_API_FRAMES_MIN: Final = 2
_PARITY_BYTES_MIN: Final = 24
_LOW_BITS: Final = bytes(byte & 0x7F for byte in range(256))


class Guess(NamedTuple):
    """A guess at what input is: the name of a `protocol`, "" if none fits, and `words` for people.

    `share` is how much of the input that explains, 0 to 1. `settings` are those of the protocol that it
    needs, and `line` those of the serial line.
    """

    protocol: str
    share: float
    words: str
    settings: Mapping[str, Any] = {}
    line: Mapping[str, Any] = {}


NOTHING: Final = Guess("", 0.0, "nothing that is known here")


def of_bytes(chunks: Sequence[bytes]) -> Guess:
    """Return what the input of a stream looks like. A chunk is what came without a pause.

    Judges at most 4,096 bytes, in time linear in them.
    """
    kept, size = list[bytes](), 0
    for chunk in chunks:
        kept.append(chunk[: _SAMPLE_BYTES - size])
        size += len(kept[-1])
    if not size:
        return Guess("", 0.0, "nothing came")
    found = (ask(kept, b"".join(kept)) for ask in _ASKED)
    return max((one for one in found if one is not None), key=lambda one: one.share, default=NOTHING)


def _tmq(_: Sequence[bytes], data: bytes) -> Guess | None:
    """Judge whether these are TMQ frames in COBS with a CRC-32: by chance none passes."""
    messages = Decoder().feed(data)
    return Guess("tmq", 1.0, f"{len(messages)} TMQ frames") if messages else None


def _nmea(_: Sequence[bytes], data: bytes) -> Guess | None:
    found = [one for one in _SENTENCE.finditer(data) if checksum(one[1] + one[2]) == int(one[3], 16)]
    if not found:
        return _nmea_without_sums(data)
    names = sorted({one[1].decode() for one in found})
    share = sum(len(one[0]) for one in found) / len(data)
    return Guess("nmea", min(1.0, 0.95 + share), f"NMEA sentences ({', '.join(names[:6])})")


def _nmea_without_sums(data: bytes) -> Guess | None:
    """Judge whether lines are sentences as old devices send them: of types that the standard has."""
    lines = [line for line in _ENDS.split(data)[1:-1] if line]
    begun = (sentence_of(line) for line in lines if line.startswith((b"$", b"!")))
    found = [one for one in begun if not one.reason and one.type in TYPES]
    if not found or 2 * len(found) < len(lines) or any(one.has_sum for one in found):
        return None
    names = sorted({one.talker + one.type for one in found})
    words = f"NMEA sentences without checksums ({', '.join(names[:6])})"
    return Guess("nmea", 0.93, words, {"checksum": "optional"})


def _vedirect(_: Sequence[bytes], data: bytes) -> Guess | None:
    """Judge by blocks whose sum is right, or by fields that are known: often no block is whole."""
    text = Plain().feed(data)[0]
    stops = [found.end() for found in END.finditer(text)]
    good = [sum(text[at:stop]) % 256 == 0 for at, stop in pairwise(stops)]
    labels = dict.fromkeys(found[1].decode() for found in _FIELD.finditer(text))
    known = [label for label in labels if label in UNITS or label in TEXTS]
    if len(known) < (1 if any(good) else _FIELDS_MIN):
        return None
    return Guess("vedirect", 0.99 if any(good) else 0.95, f"VE.Direct of Victron ({', '.join(known[:6])})")


def _p1(_: Sequence[bytes], data: bytes) -> Guess | None:
    """Judge by lines with OBIS codes. A telegram that ends without a CRC needs a setting."""
    found = _OBIS.findall(data)
    if len(found) < _FIELDS_MIN:
        return None
    codes = ", ".join(one[1:].split(b"(")[0].decode() for one in found[:3])
    settings = {"checksum": "optional"} if UNCHECKED.search(data) else {}
    return Guess("p1", 0.96, f"telegrams of a meter ({codes})", settings)


def _jsonl(_: Sequence[bytes], data: bytes) -> Guess | None:
    lines = [line for line in data.splitlines()[1:-1] if line.strip()]
    good = [line for line in lines if _is_object(line)]
    if not good or 2 * len(good) < len(lines):
        return None
    return Guess("jsonl", 0.94, f"{len(good)} lines of JSON")


def _is_object(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{") or line.count(b"{") + line.count(b"[") > 64:
        return False
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _lines(_: Sequence[bytes], data: bytes) -> Guess | None:
    share = 1 - len(data.translate(None, _TEXT)) / len(data)
    if share < _READABLE or not _ENDS.search(data):
        return None
    lines = _ENDS.split(data)
    shown = next((line for line in lines[1:-1] if line.strip()), lines[0])
    text = shown.strip().decode("ascii", "replace")[:40]
    settings = {} if b"\n" in data else {"delimiter": "\r"}
    ends = " that end with CR" if settings else ""
    return Guess("lines", 0.9 * share, f"lines of text ({json.dumps(text)}){ends}", settings)


def _seven(chunks: Sequence[bytes], data: bytes) -> Guess | None:
    """Judge whether the highest bit of each byte is a parity bit: many scales send text so."""
    odd = sum(byte.bit_count() % 2 for byte in data)
    if len(data) < _PARITY_BYTES_MIN or 0 < odd < len(data):
        return None
    low = data.translate(_LOW_BITS)
    found = _p1(chunks, low) or _lines(chunks, low)
    if found is None:
        return None
    if found.protocol == "p1":  # a meter with parity writes no CRC
        found = found._replace(settings={"checksum": "optional"})
    words = f"{found.words}, with 7 bits and {'odd' if odd else 'even'} parity"
    return found._replace(words=words, line={"data_bits": 7, "parity": "O" if odd else "E"})


def _modbus(chunks: Sequence[bytes], _: bytes) -> Guess | None:
    sizes = [len(chunk) for chunk in chunks if _is_rtu(chunk)]
    share = sum(sizes) / max(1, sum(map(len, chunks)))
    if not sizes or (max(sizes) == _RTU_BYTES_MIN and len(sizes) == 1):  # by chance, one of 65,536
        return None
    return Guess("modbus", 0.85 * share, f"{len(sizes)} messages of Modbus RTU: a master is there already")


def _is_rtu(chunk: bytes) -> bool:
    """Tell whether a chunk is a message of Modbus RTU, by its CRC-16."""
    if not _RTU_BYTES_MIN <= len(chunk) <= _RTU_BYTES_MAX:
        return False
    return crc16(chunk, 0xFFFF) == 0


def _slip(_: Sequence[bytes], data: bytes) -> Guess | None:
    packets = [one for one in data.split(_SLIP_END)[1:-1] if one]
    if len(packets) < 3 or data.count(_SLIP_END) * 64 < len(data):
        return None
    return Guess("slip", 0.5, f"{len(packets)} packets of SLIP")


def _xbee(_: Sequence[bytes], data: bytes) -> Guess | None:
    """Judge by API frames whose checksum is right and that are known: by chance one in some thousand is."""
    best: Guess | None = None
    for finder in (Frames, EscapedFrames):
        found = [one for one in finder(lambda *_: None).feed(data) if parse(one) != "other frame"]
        share = min(1.0, sum(len(one) + 4 for one in found) / len(data))
        if len(found) >= _API_FRAMES_MIN and (best is None or 0.96 * share > best.share):
            settings = {"escaped": True} if finder is EscapedFrames else {}
            best = Guess("xbee", 0.96 * share, f"{len(found)} API frames of an XBee module", settings)
    return best


def _marked(_: Sequence[bytes], data: bytes) -> Guess | None:
    """Judge by the marks of formats that need a protocol of another distribution, or go as they are."""
    if data.count(_UBX) * 200 > len(data):
        return Guess("bytes", 0.6, "u-blox UBX, which bytes carry as they are")
    if any(_chain(data, mark) >= _CHAIN_MIN for mark in _MAVLINK):
        return Guess("mavlink", 0.4, "perhaps MAVLink, which is a protocol of another distribution")
    return None


def _chain(data: bytes, mark: int) -> int:
    """Return how many messages of MAVLink with this first byte follow one another, by their lengths."""
    best, at = 0, data.find(mark)
    while 0 <= at < len(data) - 1:
        count, end = 0, at
        while end < len(data) - 1 and data[end] == mark:
            count, end = count + 1, end + _MAVLINK[mark] + data[end + 1]
        best, at = max(best, count), data.find(mark, max(at + 1, end if count > 1 else 0))
    return best


_ASKED: Final[tuple[Callable[[Sequence[bytes], bytes], Guess | None], ...]] = (
    _tmq, _nmea, _vedirect, _p1, _jsonl, _seven, _lines, _modbus, _slip, _xbee, _marked,
)  # fmt: skip
