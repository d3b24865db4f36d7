"""Numbers in columns of text. Pure, with Arrow."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$|^[+-]?(?i:nan|inf|infinity)$"


def numbers_of(text: pa.Array) -> pa.Array:
    """Return the doubles that texts stand for, null for other texts."""
    bare = pc.utf8_trim(text, " \t\r\n\0")
    wanted = pc.if_else(pc.match_substring_regex(bare, _NUMBER), bare, pa.scalar(None, pa.string()))
    return pc.replace_substring_regex(wanted, r"^\+", "").cast(pa.float64())
