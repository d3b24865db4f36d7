"""The half of the translator that receives: from frames of a CAN bus to the signals in them. Pure."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import Final

from bridges.items import ERROR, EXTENDED, OWN, REMOTE, CanFrame
from bridges.protocols.dbc.compiled import compile_message
from bridges.protocols.dbc.index import Index
from bridges.protocols.dbc.j1939.joining import Joiner
from bridges.protocols.dbc.j1939.pgn import pgn_of
from bridges.protocols.dbc.layout import Message
from bridges.protocols.dbc.station import Manner, Station

_KNOWN_MAX: Final = 8192  # identifiers: J1939 has one for each priority, source and destination
_STATIONS_MAX: Final = 4096

Taker = Callable[[bytes | bytearray, float], list[bytes]]
"""A function that takes the data of a frame with one identifier, at a time; returns the frames for the
bridge."""


class Inward:
    """The receiving half. `rejected` is where transports count, and `reject` counts the rest.

    `takers` take frames that are not published, by identifier, and `taker_of` makes one for a message that is
    not published, or returns None. `tokens_of` returns the tokens of a message from a source.
    """

    def __init__(
        self,
        messages: Iterable[Message],
        manner: Manner,
        rejected: dict[str, int],
        reject: Callable[..., None],
        tokens_of: Callable[[Message, int], tuple[int, ...]],
        taker_of: Callable[[int, Message | None], Taker | None],
    ) -> None:
        messages = list(messages)
        self._index, self._manner, self._reject = Index(messages), manner, reject
        self._extended = {pgn_of(one.id) for one in messages if one.is_extended and not one.is_j1939}
        self._tokens_of, self._other = tokens_of, taker_of
        self._takers = dict[int, Taker]()
        self._stations = dict[tuple[str, int], Station]()
        self._waiting = set[Station]()
        self._joiner = Joiner(rejected)
        self.found = 0

    @property
    def due_s(self) -> float:
        """The time at which `turn` has something to do."""
        due_s = self._joiner.due_s
        return min(due_s, min(station.due_s for station in self._waiting)) if self._waiting else due_s

    def receive(self, items: Sequence[CanFrame], now_s: float) -> list[bytes]:
        """Return the frames that these items become."""
        found, takers = list[bytes](), self._takers
        for identifier, data, marks in items:
            taker = takers.get(identifier)
            if marks & OWN:
                continue
            if taker is None:
                found += self._look_up(identifier, data, now_s)
            else:
                self.found += 1
                found += taker(data, now_s)
        return found

    def fits_as_j1939(self, identifiers: Iterable[int]) -> bool:
        """Tell whether one of these would be known if the extended messages were those of J1939."""
        return any(one & EXTENDED and pgn_of(one) in self._extended for one in identifiers)

    def turn(self, now_s: float) -> list[bytes]:
        """Return the frames that had to wait until now, and forget transports that ended in silence."""
        self._joiner.expire(now_s)
        found = list[bytes]()
        for station in [one for one in self._waiting if one.due_s <= now_s]:
            found += station.turn(now_s)
            if station.due_s == inf:
                self._waiting.discard(station)
        return found

    def _look_up(self, identifier: int, data: bytes | bytearray, now_s: float) -> list[bytes]:
        """Take a frame that comes for the first time, or that nobody takes."""
        if identifier & (REMOTE | ERROR):
            self._reject("remote" if identifier & REMOTE else "error frame")
            return []
        taker = self._taker(identifier)
        if taker is None:
            self._reject("foreign", 1)
            return []
        if len(self._takers) >= _KNOWN_MAX:
            self._takers.clear()
        self._takers[identifier] = taker
        self.found += 1
        return taker(data, now_s)

    def _taker(self, identifier: int) -> Taker | None:
        if self._index.has_part(identifier):
            return partial(self._part, identifier)
        message = self._index.find(identifier)
        return self._other(identifier, message) or self._published(message, identifier & 0xFF)

    def _published(self, message: Message | None, source: int) -> Taker | None:
        if message is None:
            return None
        key = (message.name, source if message.is_j1939 else 0)
        station = self._stations.get(key)
        if station is None:
            if len(self._stations) >= _STATIONS_MAX:
                return None
            tokens = self._tokens_of(message, source)
            station = self._stations[key] = Station(compile_message(message), tokens, self._manner)
        return partial(self._take, station) if self._manner.every_s else station.receive

    def _take(self, station: Station, data: bytes | bytearray, now_s: float) -> list[bytes]:
        found = station.receive(data, now_s)
        if station.due_s < inf:
            self._waiting.add(station)
        return found

    def _part(self, identifier: int, data: bytes | bytearray, now_s: float) -> list[bytes]:
        """Take a part of a long message, and the message if it is the last part."""
        whole = self._joiner.take(identifier, data, now_s)
        if whole is None:
            return []
        named, joined = whole
        message = self._index.find(named)
        taker = self._other(named, message) or self._published(message, named & 0xFF)
        if taker is None:
            self._reject("foreign", 1)
            return []
        return taker(joined, now_s)
