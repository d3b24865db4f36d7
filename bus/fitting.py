"""JSON that fits in a frame: of what is longer, texts are cut, and say so. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bus.wire.frame import DATA_BYTES_MAX

CUT: Final = "..."
"""The end of a text that was cut."""
LEFT_OUT: Final = "left out"
"""The name of the number of entries that are not there."""
_LETTERS: Final = (256, 64, 16)  # JSON takes up to 12 bytes for one


def cut(text: str, letters: int) -> str:
    """Return a text of at most so many letters, whose end says that it was cut."""
    return text if len(text) <= letters else text[: letters - len(CUT)] + CUT


def fitted(fields: Mapping[str, Any], texts: Sequence[str], entries: str = "", ascii: bool = True) -> bytes:
    """Return fields as JSON that a frame holds. Those named in `texts` are cut, the first one before others.

    The last of the mapping `entries` are left out, if that does not do. `ascii`: other letters are escaped.
    """
    record = dict(fields)
    for letters in _LETTERS:
        for name in texts:
            if len(data := packed(record, ascii)) <= DATA_BYTES_MAX:
                return data
            record[name] = cut(fields[name], letters)
    return _without(record, entries, ascii)


def _without(record: dict[str, Any], entries: str, ascii: bool) -> bytes:
    every = list(record[entries].items()) if entries else []
    count, data = len(every), packed(record, ascii)
    while len(data) > DATA_BYTES_MAX and count:
        count //= 2
        record[entries] = {**dict(every[:count]), LEFT_OUT: len(every) - count}
        data = packed(record, ascii)
    return data


def packed(record: Mapping[str, Any], ascii: bool) -> bytes:
    """Return fields as JSON without blanks."""
    return json.dumps(record, ensure_ascii=ascii, separators=(",", ":")).encode()
