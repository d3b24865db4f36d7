"""TMQ's greeting on a listening service; it is also the sign of life (docs/tmq.md)."""

from collections.abc import Callable

from bus.ledger import Stats
from bus.serving.connection import Connection, OnClosed, OnObjects
from bus.serving.limits import Limits
from bus.serving.listener import Listener
from bus.serving.rejections import Rejections
from bus.tmq.wire import (
    ANSWER,
    ANSWERED,
    HELLO,
    HELLO_MASK,
    Cutter,
    Hello,
    Refusal,
    data_of,
    pack_hello,
    pack_refusal,
    unpack_hello,
)


def refusal_of(first: bytes, why: str) -> bytes:
    """Return the answer to a refused connection that begins with a greeting, or has greeted already.

    Peers of 2015 know no answer: they get none.
    """
    greets = not first or first[0] & HELLO_MASK == HELLO
    return pack_refusal(Refusal(0, (), why)) if greets else b""


class Greeter:
    """A `listener` for packets that greets its peers.

    After its first whole packet a connection that is still open is greeted. A peer that understands answers
    with a greeting of its own and keeps the connection open; both repeat it each heartbeat. Other peers send
    their packet and go.
    """

    def __init__(
        self,
        limits: Limits,
        hello: Callable[[int], Hello],
        on_frames: OnObjects,
        on_closed: OnClosed,
        reject: Rejections,
        stats: Stats,
    ) -> None:
        self._hello, self._on_frames, self._reject = hello, on_frames, reject
        self.listener = Listener(
            limits,
            Cutter,
            self._heard,
            on_closed,
            reject,
            stats,
            self._greeting,
            "half a packet",
            refusal_of,
        )

    def _greeting(self) -> bytes:
        return pack_hello(self._hello(0))

    def _heard(self, connection: Connection, frames: list[bytes]) -> None:
        first = connection.objects == len(frames)
        self._on_frames(connection, frames)
        if first and not connection.closed and not connection.ended():
            connection.say(self._greeting())

    def greeted(self, connection: Connection, frame: bytes) -> Hello | None:
        """Return the greeting in a frame of type HELLO, which `on_frames` must hand back.

        Return None for a malformed one.
        """
        hello = unpack_hello(data_of(frame))
        if hello is None:
            self._reject("greeting", connection.host)
            return None
        connection.met(hello.silence_ms / 1000)
        if hello.flags & ANSWER:
            connection.say(pack_hello(self._hello(ANSWERED)))
        return hello
