"""Whether a candidate hears on the links of its bridge what another one sends, so that it knows what is sent,
and whether another has let go of what may keep a link from coming up."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Final

from bus.leases.candidate import Candidate
from bus.machine.wake_hook import WakefulLoop

BLIND_S: Final = 0.1
"""The time from all links up until a candidate is ready: it did not hear frames that came out before."""
UNREAD_S: Final = 5.0
"""The longest time for what waits in sockets then: who is always late has to be ready some time."""


class Hearing:
    """The time since which all links are up, and since which nothing waits in sockets that came before."""

    def __init__(self) -> None:
        self._loop: AbstractEventLoop | None = None
        self._up_s: float | None = None
        self._read_s: float | None = None  # since the links are up, when first nothing waited in sockets,
        self._asked = False  # and whether the loop is to tell that

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin on a loop."""
        self._loop = loop

    def look(self, is_up: bool, now: float) -> None:
        """Note whether all links are up."""
        if not is_up:
            self.lose()
        elif self._up_s is None:
            self.listen(now)

    def lose(self) -> None:
        """Note that a link is down."""
        self._up_s = None

    def listen(self, now: float) -> None:
        """Note that the links are up, and ask when what waits in sockets by now has been read."""
        self._up_s, self._read_s = now, None
        if not isinstance(self._loop, WakefulLoop):
            self._read_s = now
        elif not self._asked:
            self._asked = True
            self._loop.call_when_all_read(self._note_read)

    def _note_read(self) -> None:
        self._asked = False
        if self._loop is not None:
            self._read_s = self._loop.time()

    def is_ready(self, now: float, holding: bool) -> bool:
        """Tell whether all is heard. What waits in sockets may be old, and another may have sent it; a holder
        needs not to know."""
        if self._up_s is None or now - self._up_s < BLIND_S:
            return False
        return holding or self._read_s is not None or now - self._up_s >= UNREAD_S

    def blind_s(self, now: float) -> float:
        """Return the time before which something may not have been heard. The links are up."""
        assert self._up_s is not None
        return max(self._up_s + BLIND_S / 2, self._read_s or now)

    def close(self) -> None:
        """Ask the loop no more."""
        self._loop = None


class Others:
    """The other candidates of a lease: `freed()` is called when one of them has let go of it, and nobody else
    has it."""

    def __init__(self, candidate: Candidate, freed: Callable[[], object]) -> None:
        self._candidate, self._freed, self._held = candidate, freed, False

    def have_let_go(self) -> bool:
        """Tell whether one of them has just let go."""
        if self._candidate.other_holds:
            self._held = True
        elif self._held and self._candidate.none_else_holds:
            self._held = False
            self._freed()
            return True
        return False
