r"""The format of telegrams of meters: where one begins and ends, and its CRC. Pure.

It begins with a line `/XXX5IDENTIFICATION` and ends with `!`, behind which stand four hex digits: the
CRC-16/ARC of all from `/` to `!`. Meters before DSMR 4, and others, write none. Some leave out its leading
zeros, or add a NUL. Sources: P1 Companion Standard 5.0.2, section 5.2; IEC 62056-21, section 6.
"""

import re
from typing import Final

from bridges.protocols.blocks import Unfit
from bridges.protocols.crc16 import crc16

END: Final = re.compile(rb"\n![^\r\n]{0,8}\r?\n")
END_BYTES: Final = 12
START: Final = re.compile(rb"/[A-Za-z]{3}[^()\r\n/]{0,64}\r?\n")
UNCHECKED: Final = re.compile(rb"\n!\r?\n")
"""The end of a telegram without a CRC."""
_LAST: Final = b"\n!"
_BLANK: Final = b"\r\n\x00 "
_CRC: Final = re.compile(rb"[0-9A-Fa-f]{1,4}")


def begun(run: bytes) -> list[int]:
    """Return where telegrams begin in a run: the last is the only one that can be whole."""
    return [found.start() for found in START.finditer(run, 0, run.rindex(_LAST) + 1)]


def is_blank(data: bytes) -> bool:
    """Return whether nothing is in data but ends of lines."""
    return not data.strip(_BLANK)


def lines_of(telegram: bytes) -> tuple[list[str], bool]:
    """Return the lines of a telegram behind the first, and whether it has a CRC.

    A line that begins with a value goes on with the line before. Raises `Unfit`: `checksum`, or `malformed`.
    """
    last = telegram.rindex(_LAST)
    stop = last + len(_LAST)
    written = telegram[stop:].strip(_BLANK)
    if written and not _CRC.fullmatch(written):
        raise Unfit("malformed")
    if written and int(written, 16) != crc16(telegram[:stop], 0):
        raise Unfit("checksum")
    text = telegram[:last].decode("latin-1").replace("\r", "").replace("\n(", "(")
    return [line for line in text.split("\n")[1:] if line], bool(written)
