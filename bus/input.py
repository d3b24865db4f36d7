"""The watch over what comes in by a link: it logs noise once, and that messages come again."""

import logging
from asyncio import AbstractEventLoop, TimerHandle
from math import inf

from bus.noise import Ear, Noise

log = logging.getLogger("buscoupler.bus")


class InputWatch:
    """The watch over one link's input, for one reader after the other, or several at once.

    `words` is the condition of the link, and "" while nothing is wrong.
    """

    def __init__(self, name: str, ear: Ear) -> None:
        self._name, self._noise = name, Noise(ear)
        self._loop: AbstractEventLoop | None = None
        self._timer: TimerHandle | None = None

    @property
    def words(self) -> str:
        return self._noise.words

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin, or begin again after a loss. What was told stays told until messages come."""
        self._loop = loop
        self._noise.renew()

    def hear(self, size: int, messages: int, noise: int = 0, sample: bytes = b"") -> None:
        """Note `size` units of input with `messages` of any kind, of which `noise` units are surely none.

        `sample` has the last bytes of input, where bytes come.
        """
        assert self._loop is not None
        before = self._noise.words
        if self._noise.hear(self._loop.time(), size, messages, noise, sample):
            self._tell(before)
        self._arm()

    def _arm(self) -> None:
        if self._timer is None and self._noise.due_s < inf and self._loop is not None:
            self._timer = self._loop.call_at(self._noise.due_s, self._look, self._loop)

    def _look(self, loop: AbstractEventLoop) -> None:
        self._timer = None
        if self._noise.look(loop.time()):
            self._tell("")
        self._arm()

    def _tell(self, before: str) -> None:
        if self._noise.words:
            log.warning("%s: %s", self._name, self._noise.words)
        else:
            log.info("%s: messages come again, after %s", self._name, before)

    def close(self) -> None:
        """Stop looking. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
