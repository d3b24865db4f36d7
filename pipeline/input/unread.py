"""Rows of a capture on this machine that are in no file yet, so that no job but a watch reads them."""

from pathlib import Path
from typing import NamedTuple

from capture.files import gateway_of, journals_beside


class Unread(NamedTuple):
    """The time of the first and of the last row in a journal, in ns by the gateway's clock."""

    gateway: str
    from_ns: int
    to_ns: int


def unread(days: Path) -> list[Unread]:
    """Look into the journals beside a capture. Look before the files are listed: a journal becomes one."""
    from capture.journals import times_of

    found = list[Unread]()
    for path in journals_beside(days):
        try:
            times = times_of(path)
        except OSError:  # it has become a file
            continue
        if times is not None:
            found.append(Unread(gateway_of(path), *times))
    return found
