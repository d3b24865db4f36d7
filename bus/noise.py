"""Noise: what comes in by a link and is no message, told once as a state that ends when messages come. Pure.

The cause is most often a setting that does not fit: another baud rate, another protocol, another device.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

_SHOWN_BYTES: Final = 8


@dataclass(frozen=True)
class Ear:
    """The input of a medium as its noise shows. `unit` is what is counted, `guess` what may be wrong, and
    `noun` what none of it is. `likeness(sample)` says what the input looks like, "" if that is unknown; it
    replaces `guess`. Where it ends with it, some of the input is shown.

    Input without a message is noise when `sure` units of it were rejected, or more than `most` came, which is
    more than a message takes. Before the first message it is noise too when `few` units have come, and after
    `slow_s` seconds still none of them is a message.
    """

    unit: str = "bytes"
    guess: str = "another baud rate or protocol"
    sure: int = 256
    most: float = inf
    few: int = 16
    slow_s: float = 3.0
    noun: str = "a frame"
    likeness: Callable[[bytes], str] = lambda _: ""


class Noise:
    """The state of the input of one link: `words` says what is wrong, and is "" while messages come.

    Time is an argument, in seconds. `count` units came since the last message. `due_s` is when to look again;
    it is infinite while there is nothing to look for.
    """

    __slots__ = ("_ear", "_known", "_rejected", "_sample", "count", "due_s", "words")

    def __init__(self, ear: Ear) -> None:
        self._ear = ear
        self._known = False
        self.words = ""
        self.count = self._rejected = 0
        self.due_s = inf
        self._sample = b""

    def hear(self, now: float, size: int, messages: int, rejected: int = 0, sample: bytes = b"") -> bool:
        """Note `size` units of input that held `messages`, and of which `rejected` are surely none.

        `sample` has the last bytes of input. Return whether `words` changed.
        """
        self._sample = sample or self._sample
        if messages:
            return self._end()
        self.count += size
        self._rejected += rejected
        self.count = max(self.count, self._rejected)  # some of it may have come before the last message
        if self.words:
            return False
        if self._rejected >= self._ear.sure or self.count > self._ear.most:
            return self._begin()
        if size and self.due_s == inf and not self._known:
            self.due_s = now + self._ear.slow_s
        return False

    def look(self, now: float) -> bool:
        """Judge input that comes slowly, from `due_s` on. Return whether `words` changed."""
        if now < self.due_s:
            return False
        self.due_s = inf
        return self.count >= self._ear.few and self._begin()

    def renew(self) -> None:
        """Note that the link was opened again, perhaps to another device. Noise lasts until messages come."""
        self._known = False

    def _begin(self) -> bool:
        guess = self._ear.likeness(self._sample) or self._ear.guess
        if self._sample and guess.endswith(self._ear.guess):
            guess += f" (bytes such as {self._sample[:_SHOWN_BYTES].hex(' ')})"
        self.words = f"{self.count:,} {self._ear.unit}, none {self._ear.noun}: {guess}?"
        self.due_s = inf
        return True

    def _end(self) -> bool:
        changed, self.words = bool(self.words), ""
        self.count = self._rejected = 0
        self._known, self.due_s, self._sample = True, inf, b""
        return changed
