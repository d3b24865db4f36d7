"""The protocol of the clients of a syndication broker: some come by TCP, others are rules of a bus. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from devices.syndication.wire.messages import Difference, Form, Publication

Told = Publication | Difference
"""A message to a client."""

SEGMENT_BYTES: Final = 1400
"""A segment of TCP holds so many bytes on Ethernet, over tunnels too."""


class Messages(list[Told]):
    """Messages in their order, for one client or many. Once they have been packed, none is added."""

    __slots__ = ("_packed", "_pieces")

    def __init__(self, messages: Iterable[Told] = ()) -> None:
        super().__init__(messages)
        self._packed: dict[Form, bytes] = {}
        self._pieces: list[tuple[bytes, int]] = []

    def packed(self, form: Form) -> bytes:
        """Return all together, packed at most once for each form."""
        found = self._packed.get(form)
        if found is None:
            found = self._packed[form] = b"".join([message.packed(form) for message in self])
        return found

    def pieces(self) -> list[tuple[bytes, int]]:
        """Return whole messages, `TAGGED`, in parts that fit a segment of TCP, with their counts."""
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
    """One that publishes or subscribes; known by its identity. Bounds hold for each `host`, "" has none."""

    @property
    def host(self) -> str: ...

    def take(self, messages: Messages) -> None:
        """Take what is said to it, in this order. Never blocks, never raises because of a peer.

        It may end the client: its `leave` is then delivered after what is being delivered now.
        """

    def refuse(self, why: str) -> None:
        """Note that its query was refused, and why, in words. Its last query stands."""
