"""The protocol of a broker's clients, which come by TCP or are rules of a bus; and messages to them. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from devices.syndication.wire.messages import Difference, Form, Publication

ClientMessage = Publication | Difference
"""A message from the broker to a client."""

SEGMENT_BYTES: Final = 1400
"""The bytes that fit one segment of TCP on Ethernet, through tunnels too."""


class Messages(list[ClientMessage]):
    """Messages in order, for one client or several. None is added once they have been packed."""

    __slots__ = ("_packed", "_pieces")

    def __init__(self, messages: Iterable[ClientMessage] = ()) -> None:
        super().__init__(messages)
        self._packed: dict[Form, bytes] = {}
        self._pieces: list[tuple[bytes, int]] = []

    def packed(self, form: Form) -> bytes:
        """Return all messages packed in a form. Each form is packed once."""
        found = self._packed.get(form)
        if found is None:
            found = self._packed[form] = b"".join([message.packed(form) for message in self])
        return found

    def pieces(self) -> list[tuple[bytes, int]]:
        """Return the messages in `TAGGED` form, in pieces of at most one TCP segment, each with its count.

        A longer message is a piece of its own.
        """
        if not self._pieces:
            if len(self.packed(Form.TAGGED)) <= SEGMENT_BYTES:
                self._pieces = [(self.packed(Form.TAGGED), len(self))]
            else:
                self._pieces = list(_pieces(message.packed(Form.TAGGED) for message in self))
        return self._pieces


def _pieces(messages: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    piece: list[bytes] = []
    room = SEGMENT_BYTES
    for message in messages:
        if len(message) > room and piece:
            yield b"".join(piece), len(piece)
            piece, room = [], SEGMENT_BYTES
        piece.append(message)
        room -= len(message)
    yield b"".join(piece), len(piece)


class Client(Protocol):
    """A client of the broker: it publishes or subscribes, and is told apart by its identity.

    Bounds hold for each `host`; the host "" has none.
    """

    @property
    def host(self) -> str: ...

    def take(self, messages: Messages) -> None:
        """Send messages to the client, in order. Never blocks, never raises because of a peer.

        The client may end meanwhile; `Exchange.leave` then takes effect after the current delivery.
        """

    def refuse(self, why: str) -> None:
        """Tell the client why its query was refused, in words. Its last query stays in force."""

    def deny(self, why: str, form: Form) -> None:
        """Tell the client, a producer that uses `form`, why a publication was refused, in words."""
