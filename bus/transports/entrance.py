"""The handshakes of a peer that has connected: that of TLS, if any, then that of the framing."""

import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from bus.errors import words_of
from bus.ledger import Stats
from bus.text import SAID_BYTES, after, quoting
from bus.transports.chores import queues_of
from bus.transports.framing import Framing
from bus.transports.secure import SecureSocket
from bus.transports.sockets import CLOSED_BY_PEER
from bus.wire.handshake import Handshake


class Outcome(NamedTuple):
    """The functions that an entrance calls.

    `say(data)` sends bytes. `enter(rest)` is called once all is done, with what came behind the handshakes;
    `refuse(fault)` if the peer does not enter.
    """

    say: Callable[[bytes], None]
    enter: Callable[[bytes], None]
    refuse: Callable[[str], None]


class Entrance:
    """A peer on its way in. It reads the socket until its handshakes are done, at most `limit_s` seconds.

    `stats` is the ledger of this connection; None where several share one, and who has it counts refusals.
    """

    def __init__(
        self,
        sock: socket.socket | SecureSocket,
        framing: Framing,
        stats: Stats | None,
        outcome: Outcome,
        host: str,
    ) -> None:
        self._socket, self._framing, self._stats, self._host = sock, framing, stats, host
        self._secure = sock if isinstance(sock, SecureSocket) else None
        self._handshake: Handshake | None = None
        self._said, self._said_bytes = b"", 0
        self._say, self._enter, self._refuse = outcome
        self._ended = False

    def open(self, loop: AbstractEventLoop, limit_s: float) -> None:
        """Begin the handshakes."""
        self._loop, self._chores = loop, queues_of(loop).chores
        self._timer = loop.call_later(limit_s, self._on_silence, limit_s)
        loop.add_reader(self._socket, self._on_readable)
        self._on_readable()

    def _on_silence(self, limit_s: float) -> None:
        name = "handshake" if self._handshake is None else self._handshake.name
        self._count_stranger()
        self._refuse(after(f"no {name} within {limit_s:g} s", self._heard))

    def _on_readable(self) -> None:
        """Continue in its turn: anybody may begin a handshake."""
        if not self._ended and not self._chores.put(self._host, self._continue):
            self._loop.remove_reader(self._socket)

    def _continue(self) -> None:
        if self._ended:
            return
        self._loop.add_reader(self._socket, self._on_readable)
        try:
            if self._secure is None or self._secure.shake():
                self._shake()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._count_stranger()
            self._refuse(after(words_of(error), self._heard))

    @property
    def _heard(self) -> bytes:
        """The words of the peer; none where the fault is a reason of a ledger."""
        if self._framing.handshake is None:
            return b""
        return self._said or (b"" if self._secure is None else self._secure.said)

    def _shake(self) -> None:
        handshake = self._handshake
        if self._framing.handshake is None:
            return self._done(b"")
        if handshake is None:
            handshake = self._handshake = self._framing.handshake()
            self._say(handshake.begin())
        received = self._socket.recv(handshake.wants)
        if not received:  # who says nothing only looked whether anybody listens
            why = f"closed during the {handshake.name}" if handshake.begun else CLOSED_BY_PEER
            self._count_stranger()
            return self._refuse(after(why, self._said))
        self._said, self._said_bytes = (self._said + received)[-SAID_BYTES:], self._said_bytes + len(received)
        self._say(handshake.feed(received))
        if handshake.fault:
            return self._turn_away(handshake.fault, received)
        if handshake.done:
            return self._done(handshake.rest)
        if self._secure is not None and self._secure.pending:  # the loop does not know of these bytes
            self._loop.call_soon(self._on_readable)
        return None

    def _turn_away(self, fault: str, received: bytes) -> None:
        """Refuse a peer that is none of ours, with what it said if that was text."""
        with suppress(OSError):
            more = self._socket.recv(SAID_BYTES)
            received, self._said_bytes = received + more, self._said_bytes + len(more)
        self._count()
        self._refuse(quoting(fault, received))

    def _count_stranger(self) -> None:
        """Count a peer that goes before its framing is known; one that lacks our keys counts that itself."""
        if self._handshake is None or self._handshake.name == Handshake.name:
            self._count()

    def _count(self) -> None:
        """Count a peer that does not enter, if it said anything."""
        said_bytes = self._said_bytes + (0 if self._secure is None else self._secure.unsecured_bytes)
        if self._stats is None or not said_bytes:
            return
        self._stats.noise_bytes += said_bytes
        if not self._stats.rejected:  # keys have reasons of their own
            self._stats.reject("handshake")

    def _done(self, rest: bytes) -> None:
        if not self._ended:
            self.close()
            self._enter(rest)

    def close(self) -> None:
        """End the handshakes where they are. Idempotent. The socket stays as it is."""
        self._ended = True
        self._timer.cancel()
