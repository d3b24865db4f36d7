"""The looks of lines of candump, by which a file is known: in its log, and on a console."""

import re
from typing import Final

LOGGED: Final = re.compile(rb"^\(\d{1,10}\.\d{1,9}\) +\S+ \S+#", re.MULTILINE)
"""A line of a log of candump."""
_BLANK: Final = r"(?:\x1b\[[\d;]*m| )"  # a color stands where a blank does
SHOWN: Final = re.compile(
    (
        rf"^{_BLANK}*(?:\([\d.: -]{{8,29}}\){_BLANK}+)?"
        rf"(?:\S{{1,40}}{_BLANK}+(?:[RT]X [B-] [E-]{_BLANK}+)?[0-9A-F]{{3,8}}|<0x[0-9a-f]{{3,8}}>){_BLANK}+"
        rf"(?:\[\d{{1,2}}\]|\{{[0-9A-F]\}})(?:{_BLANK}|\r?$)"
    ).encode(),
    re.MULTILINE,
)
"""A line that candump shows on a console."""
