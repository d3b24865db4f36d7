"""The keys of a terminal, one at a time, while it does not echo them."""

import contextlib
import os
import re
import select
import sys
import termios
import tty
from collections.abc import Iterator
from typing import Final

_SEQUENCES: Final = {
    "A": "up", "B": "down", "H": "home", "F": "end", "5~": "page up", "6~": "page down", "1~": "home",
    "4~": "end",
}  # fmt: skip
_PLAIN: Final = {"\x7f": "backspace", "\b": "backspace", "\r": "enter", "\n": "enter", "\x1b": "escape"}
_KEY: Final = re.compile(r"\x1b[\[O](\d*~|[A-Z])|(.)", re.DOTALL)
_READ_BYTES: Final = 4096


def keys_of(text: str) -> list[str]:
    """Return the keys that a terminal sent: `up`, `page down`, `enter`, ..., or a letter for itself."""
    found = list[str]()
    for sequence, letter in _KEY.findall(text):
        name = _SEQUENCES.get(sequence, "") if sequence else _PLAIN.get(letter, letter)
        found += [name] if name and (len(name) > 1 or name.isprintable()) else []
    return found


class Keyboard:
    """The keyboard of standard input. If that is no terminal, it only waits."""

    def __init__(self) -> None:
        self._file = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None

    @contextlib.contextmanager
    def single(self) -> Iterator[None]:
        """Have each key come at once and unseen within the block. Ctrl-C stays a signal."""
        if self._file is None:
            yield
            return
        before = termios.tcgetattr(self._file)
        try:
            tty.setcbreak(self._file)
            yield
        finally:
            termios.tcsetattr(self._file, termios.TCSADRAIN, before)

    def wait(self, limit_s: float) -> list[str]:
        """Return the keys that are pressed within `limit_s`; [] if none is."""
        watched = [] if self._file is None else [self._file]
        ready, _, _ = select.select(watched, [], [], max(0.0, limit_s))
        if not ready or self._file is None:
            return []
        data = os.read(self._file, _READ_BYTES)
        if not data:
            self._file = None  # the terminal has hung up
        return keys_of(data.decode(errors="ignore"))
