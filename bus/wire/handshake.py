"""Handshakes: the bytes that two peers exchange on a stream before the first message. Pure."""

from typing import Protocol

from bus.wire.sp import HANDSHAKE, handshake_fault


class Handshake(Protocol):
    """The handshake at one end of one connection. Derive from this class.

    Send what `begin()` returns, then feed the bytes that arrive. With `done` the rest of the stream is
    messages, of which `rest` has already arrived. A `fault` is the reason why there is no peer; neither may
    be there yet. `begun`: the peer has sent something. `name`: the name for people.
    """

    name: str = "handshake"
    begun: bool = False
    done: bool = False
    fault: str = ""
    rest: bytes = b""

    @property
    def wants(self) -> int:
        """The largest number of bytes that may be read next."""

    def begin(self) -> bytes:
        """Return the bytes to send first."""

    def feed(self, data: bytes) -> bytes:
        """Handle bytes of the peer; return the bytes to answer, also for a refusal. Never raises."""


class Greeting(Handshake):
    """The handshake of SP: both send the same 8 bytes."""

    def __init__(self) -> None:
        self._received = b""

    @property
    def wants(self) -> int:
        return len(HANDSHAKE) - len(self._received)

    def begin(self) -> bytes:
        return HANDSHAKE

    def feed(self, data: bytes) -> bytes:
        self.begun = True
        self._received += data
        self.fault = handshake_fault(self._received) or ""
        self.done = self._received == HANDSHAKE
        return b""
