"""The watch of a recorder over a hub: where each batch comes from, and what the hub's links have counted."""

from collections.abc import Callable, Sequence
from typing import Final

from bus.hub import Hub, Pipe, came_ns
from bus.wire.batch import Batch
from capture.schema import Direction, Kind
from devices.tap.ledger import Ledger, LedgerRow
from devices.tap.ring import RecordPlace

FRAME: Final = int(Kind.FRAME)
_PLACES = 4096

Locate = Callable[[Pipe | None], tuple[str, str, Direction]]
"""A function that returns of a pipe (None: the appliance itself) its segment, its name, and the direction of
what it sends us."""
LocateLink = Callable[[str], tuple[str, str]]
"""A function that returns of a link of a hub its segment, and its name there."""


class Watch:
    """A tap of a recorder. It looks up the place of each pipe once."""

    __slots__ = (
        "_ledger", "_locate", "_locate_link", "_name", "_places", "_record", "hub", "place_of_hub",
    )  # fmt: skip

    def __init__(
        self,
        record: Callable[[bytes, Batch, int, Sequence[int]], None],
        name: str,
        locate: Locate,
        hub: Hub | None = None,
        locate_link: LocateLink | None = None,
    ) -> None:
        self._record, self._name, self._locate, self.hub = record, name, locate, hub
        self._places: dict[int, tuple[Pipe | None, bytes]] = {}
        self._locate_link = locate_link or (lambda link: (locate(None)[0], link))
        self._ledger = None if hub is None else Ledger(hub)
        self.place_of_hub = RecordPlace(name, "", "", 0).encode()
        if hub is not None:
            hub.tap(self)

    def __call__(self, batch: Batch, pipe: Pipe | None) -> None:
        known = self._places.get(id(pipe))
        place = known[1] if known is not None and known[0] is pipe else self._learn(pipe)
        self._record(place, batch, FRAME, came_ns(pipe))

    def _learn(self, pipe: Pipe | None) -> bytes:
        if len(self._places) >= _PLACES:
            self._places.clear()
        bus, peer, direction = self._locate(pipe)
        place = RecordPlace(self._name, bus, peer, int(direction)).encode()
        self._places[id(pipe)] = pipe, place
        return place

    def gains(self) -> list[LedgerRow]:
        """Return the rows of the messages counted since the last call."""
        gains = [] if self._ledger is None else self._ledger.gains()
        return [
            (*self._locate_link(link), int(direction), word, count) for link, direction, word, count in gains
        ]

    def close(self) -> None:
        if self.hub is not None:
            self.hub.untap(self)
