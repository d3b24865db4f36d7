"""The format of VE.Direct: blocks of fields whose sum is 0, and HEX frames between. Pure.

A block is CR LF, label, tab and value for each field. In the last one, `Checksum`, the value is one byte, by
which the sum of all bytes of the block is 0 modulo 256. A HEX frame, `:` to LF, may stand anywhere but
between `Checksum` and its byte, and is no part of the sum. Source: Victron, VE.Direct Protocol FAQ.
"""

import re
from typing import Final

from bridges.protocols.blocks import FIELDS_MAX, Unfit
from bridges.protocols.vedirect.labels import LABEL

LAST: Final = b"\nChecksum\t"
"""The bytes that stand before the last one of a block."""
END: Final = re.compile(LAST + rb"[\x00-\xff]")
END_BYTES: Final = len(LAST) + 1
HEX_DIGITS_MAX: Final = 256
_HEX: Final = re.compile(rb":(?<!%b:)[0-9A-Fa-f]{1,%d}\n" % (LAST, HEX_DIGITS_MAX))
_HEX_BEGUN: Final = re.compile(rb":(?<!%b:)[0-9A-Fa-f]{0,%d}" % (LAST, HEX_DIGITS_MAX))
_FIELD: Final = re.compile(rf"({LABEL})\t([ -~]{{0,255}})")


class Plain:
    """A remover of HEX frames. It holds one that has begun, and the last bytes of what came before."""

    __slots__ = ("_before", "_begun")

    def __init__(self) -> None:
        self._before = self._begun = b""

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """Return what of the bytes is no HEX frame, and how many such frames were in them."""
        data = self._before + self._begun + data
        stop = data.rfind(b":", len(self._before))
        if stop < 0 or _HEX_BEGUN.fullmatch(data, stop) is None:
            stop = len(data)
        pieces, at = list[bytes](), len(self._before)
        for found in _HEX.finditer(data, at, stop):
            pieces.append(data[at : found.start()])
            at = found.end()
        self._begun, self._before = data[stop:], data[max(0, stop - len(LAST)) : stop]
        return b"".join((*pieces, data[at:stop])), len(pieces)

    def take_rest(self) -> bytes:
        """Return what may have been the beginning of a HEX frame. Begin anew."""
        rest, self._before, self._begun = self._begun, b"", b""
        return rest


def fields_of(block: bytes) -> dict[str, str]:
    """Return the values of a block by their labels, without the checksum.

    Raises `Unfit`: `checksum`, `malformed`, `field twice` (the end of another block was lost), or `too many
    fields`.
    """
    if sum(block) % 256:
        raise Unfit("checksum")
    lines = block[: -END_BYTES - 1].decode("latin-1").split("\r\n")
    if lines[0] or len(lines) < 2:
        raise Unfit("malformed")
    if len(lines) > FIELDS_MAX:
        raise Unfit("too many fields")
    found = [_FIELD.fullmatch(line) for line in lines[1:]]
    fields = {one[1]: one[2] for one in found if one is not None}
    if None in found:
        raise Unfit("malformed")
    if len(fields) < len(found):
        raise Unfit("field twice")
    return fields
