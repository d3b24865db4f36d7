"""The journal of a bus as a status shows it: a link of its own, and a row for each end."""

from typing import Any, Final

from bridges.durable.end import End
from bridges.durable.house import House
from bus.hub import State
from bus.journal.journal import Backlog

NOTHING: Final = Backlog(0, 0, None)


class ShownJournal:
    """The journal of a `House`, to be looked at as a link is (`LinkView`): up while it takes messages."""

    condition = ""
    queue_bytes = 0

    def __init__(self, house: House) -> None:
        self._house = house
        self.name = self.url = f"journal {house.settings.directory}"

    @property
    def state(self) -> State:
        """The state: opening, up, or waiting for the next attempt to open it or to write."""
        if self._house.fault:
            return "waiting"
        return "up" if self._house.journal_id else "opening"

    @property
    def fault(self) -> str:
        """The reason why messages are live only; "" if the journal takes them."""
        return "" if self.state != "waiting" else f"messages are live only: {self._house.fault}"

    @property
    def losses(self) -> int:
        """The number of times that the journal began to take no messages."""
        return self._house.losses

    @property
    def links(self) -> list[str]:
        """The names of the links at whose ends it is kept for somebody."""
        return list(dict.fromkeys(end.link for end in self._house.ends))

    def rows(self, link: str) -> list[dict[str, Any]]:
        """Return a row for each end at a link."""
        return [self.row(end) for end in self._house.ends if end.link == link]

    def row(self, end: End) -> dict[str, Any]:
        """Return the backlog of an end, as of the last second, as a status has it."""
        house = self._house
        kept, decline = house.looks.backlogs.get(end.gateway, NOTHING), house.looks.declines[end.gateway]
        found: dict[str, Any] = {
            "for": end.gateway,
            "directory": house.settings.directory,
            "state": end.state,
            "messages": kept.messages,
            "bytes": kept.bytes,
        }
        if kept.oldest_ms is not None:
            found["oldest_ms"] = max(0, house.now_ms - kept.oldest_ms)
        to_go_s = decline.to_go_s if end.line is not None else None
        return found if to_go_s is None else found | {"to_go_s": round(to_go_s, 1)}
