"""The search of a message of a database by the identifier of a frame. Pure."""

from collections.abc import Iterable, Iterator

from bridges.items import EXTENDED, IDENTIFIER, REMOTE, STANDARD_MAX
from bridges.protocols.dbc.j1939.pgn import (
    ADDRESS_CLAIMED,
    NULL,
    PACKETS,
    REQUEST,
    TRANSPORT,
    identifier_of,
    mask_of,
    pgn_of,
)
from bridges.protocols.dbc.layout import Message
from bridges.protocols.selection import FILTERS_MAX, Selection


class Index:
    """The messages of a database by identifier, and those of J1939 by PGN.

    Where several have one PGN, that with the source of the frame is meant, or else one without a source
    (254, as databases write it), or the first.
    """

    def __init__(self, messages: Iterable[Message]) -> None:
        self._exact, self._by_pgn = dict[int, Message](), dict[int, list[Message]]()
        for message in messages:
            if message.is_j1939:
                self._by_pgn.setdefault(pgn_of(message.id), []).append(message)
            else:
                self._exact[message.identifier] = message

    @property
    def has_j1939(self) -> bool:
        """Whether any message is of J1939."""
        return bool(self._by_pgn)

    def find(self, identifier: int) -> Message | None:
        """Return the message that a frame with this identifier, top bits included, has; None for another."""
        found = self._exact.get(identifier)
        if found is not None or not identifier & EXTENDED:
            return found
        return self.find_pgn(pgn_of(identifier), identifier & 0xFF)

    def find_pgn(self, pgn: int, source: int) -> Message | None:
        """Return the message of J1939 with this PGN that a source sends, or None."""
        among = self._by_pgn.get(pgn, ())
        for wanted in (source, NULL):
            for message in among:
                if message.id & 0xFF == wanted:
                    return message
        return among[0] if among else None

    def has_part(self, identifier: int) -> bool:
        """Return whether a frame with this identifier, top bits included, is a part of a long message."""
        if not identifier & EXTENDED or not self._by_pgn:
            return False
        message = self.find(identifier)
        return pgn_of(identifier) in (TRANSPORT, PACKETS) or (message is not None and message.is_fast)


def filters_of(messages: Iterable[Message], claims: bool) -> tuple[tuple[int, int], ...] | None:
    """Return an identifier and a mask for the frames of each message; None if these are too many.

    With `claims`, frames about addresses of J1939 are among them.
    """
    found = tuple(dict.fromkeys(_filters(list(messages), claims)))
    return found if len(found) <= FILTERS_MAX else None


def selection_of(messages: Iterable[Message]) -> Selection:
    """Return the identifiers of messages."""
    found = dict[int, set[int]]()
    for value, mask in _filters(list(messages), claims=False):
        found.setdefault(mask, set()).add(value)
    return Selection({mask: frozenset(values) for mask, values in found.items()})


def _filters(messages: list[Message], claims: bool) -> Iterator[tuple[int, int]]:
    for message in messages:
        if not message.is_j1939:
            identifiers = IDENTIFIER if message.is_extended else STANDARD_MAX
            yield message.identifier, EXTENDED | REMOTE | identifiers
    pgns = [pgn_of(message.id) for message in messages if message.is_j1939]
    special = (TRANSPORT, PACKETS, *((ADDRESS_CLAIMED, REQUEST) if claims else ())) if pgns else ()
    for pgn in (*pgns, *special):
        yield identifier_of(pgn, 0, 0, 0), EXTENDED | REMOTE | mask_of(pgn)
