"""The turns in which a pipe reads its socket: at once, with others where it is much work, or after a moment
in which messages gather."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import partial
from socket import socket
from typing import Any

from bus.machine.wake_hook import WakefulLoop
from bus.transports.chores import Queues, queues_of
from bus.transports.framing import Toil
from bus.transports.gathering import WAIT_S
from bus.transports.portion import Portion
from bus.transports.secure import SecureSocket
from bus.wire.sp import SCRATCH_BYTES


class Reading:
    """The turns of one socket, of a peer at `host`. `read()` reads once.

    `toil`, if the framing has it, tells what the last read was for its decoder. `portion` is how much one
    read may bring.
    """

    __slots__ = (
        "_has_ended",
        "_host",
        "_is_paused",
        "_looks_away",
        "_loop",
        "_queues",
        "_read",
        "_reader",
        "_socket",
        "portion",
        "toil",
    )
    _loop: AbstractEventLoop
    _queues: Queues

    def __init__(
        self,
        sock: socket | SecureSocket,
        host: str,
        toil: Callable[[Any], Toil] | None,
        read: Callable[[], None],
    ) -> None:
        self._socket, self._host, self.toil, self._read = sock, host, toil, read
        self._is_paused = self._looks_away = self._has_ended = False
        self.portion = Portion(SCRATCH_BYTES)
        self._reader: Callable[[], object] = read

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin on a loop; nothing is read before `begin`."""
        self._loop, self._queues = loop, queues_of(loop)

    def begin(self) -> None:
        """Read what comes from now on."""
        self._loop.add_reader(self._socket, self._reader)

    def pause(self) -> None:
        """Read nothing until `resume`."""
        self._is_paused = True
        if not self._has_ended:
            self._loop.remove_reader(self._socket)

    def resume(self) -> None:
        """Read again, if the pipe is still open."""
        self._is_paused = False
        if not self._has_ended:
            self._loop.add_reader(self._socket, self._reader)

    def end(self) -> None:
        """Read nothing any more."""
        self._has_ended = True
        self._loop.remove_reader(self._socket)

    def note(self, decoder: Any) -> None:
        """Note that the work with a read that may be much is done: when has the next one its turn?"""
        self._pace((self.toil and self.toil(decoder)) or ("busy" if self.portion.is_costly else ""))

    def look_away(self) -> None:
        """Read nothing for a moment, while messages gather. Others have their turns meanwhile."""
        if isinstance(self._loop, WakefulLoop) and not (
            self._looks_away or self._has_ended or self._is_paused
        ):
            self._looks_away = True
            self._loop.hush(self._socket)
            self._loop.call_later(WAIT_S, self._look_again, self._loop)

    def expect_no_answer(self) -> None:
        """Have the loop sleep before the next read, for nothing was said that it would answer."""
        if isinstance(self._loop, WakefulLoop):
            self._loop.expect_no_answer()

    def _look_again(self, loop: WakefulLoop) -> None:
        self._looks_away = False
        if not self._has_ended and not self._is_paused:
            loop.heed(self._socket)
            self._reader()

    def _pace(self, toil: Toil) -> None:
        """Read in turns with others from now on if the last read was much work; else at once again."""
        if not toil and self._reader == self._read:
            return
        self._reader = partial(self._read_later, toil) if toil else self._read
        if not self._is_paused and not self._has_ended:
            self._loop.add_reader(self._socket, self._reader)

    def _read_later(self, toil: Toil) -> None:
        queue = self._queues.chores if toil == "chores" else self._queues.busy
        if not queue.put(self._host, self._read_now):
            self._loop.remove_reader(self._socket)

    def _read_now(self) -> None:
        if not self._has_ended and not self._is_paused:
            self._loop.add_reader(self._socket, self._reader)
            self._read()
