"""The format of a sentence of NMEA 0183: where it begins, its address, its checksum. Pure."""

import re
from functools import reduce
from operator import xor
from typing import Final, NamedTuple

_START: Final = re.compile(rb"\$|!(?=[A-Z][A-Z0-9]{4},)")
_WHOLE: Final = re.compile(
    rb"([$!]?)(?P<body>(?P<address>[A-Z][A-Z0-9]{1,15})(?:,[ -#%-)+-~]*+)?)(?:\*(?P<sum>[0-9A-Fa-f]{2}))?"
)
_TAG: Final = re.compile(rb"\\[ -\[\]-~]*\\")
ADDRESS_BYTES: Final = 5
ENCAPSULATING: Final = frozenset({"ABM", "BBM", "VDM", "VDO"})


class Sentence(NamedTuple):
    """A sentence. `reason`: why it is none, "" if it is. `body` is what the checksum is about."""

    talker: str = ""
    type: str = ""
    body: bytes = b""
    has_sum: bool = False
    reason: str = ""


def starts(run: bytes) -> list[int]:
    """Return where sentences begin in a line: the last is the only one that can be whole."""
    return [match.start() for match in _START.finditer(run)]


def is_tag(data: bytes) -> bool:
    r"""Return whether data are a tag block of NMEA 4, such as `\s:1*hh\`, in front of a sentence."""
    return _TAG.fullmatch(data) is not None


def parse(text: bytes) -> Sentence:
    """Return a sentence in its parts; its reason is `malformed`, `address` or `checksum` if it is none.

    A reserved character inside is `malformed`: what follows another `$` or `*` is not of the same sentence.
    """
    found = _WHOLE.fullmatch(text)
    if found is None:
        return Sentence(reason="malformed")
    body, address, written = found["body"], found["address"].decode(), found["sum"]
    if address[0] != "P" and len(address) != ADDRESS_BYTES:
        return Sentence(reason="address")
    if written is not None and int(written, 16) != checksum(body):
        return Sentence(reason="checksum")
    talker, kind = (address[:1], address[1:]) if address[0] == "P" else (address[:2], address[2:])
    return Sentence(talker, kind, body, written is not None)


def start_of(sentence: Sentence) -> bytes:
    """Return how a sentence begins: `!` if it encapsulates others, such as those of AIS, else `$`."""
    return b"!" if sentence.talker != "P" and sentence.type in ENCAPSULATING else b"$"


def checksum(body: bytes) -> int:
    """Return the checksum of what stands between `$` and `*`: all bytes by exclusive or."""
    return reduce(xor, body, 0)
