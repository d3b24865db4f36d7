"""Links that are not up: since when, and what they have missed meanwhile. Pure: times are in seconds.

A listener without peers is up. What dials or opens a device, and has nobody for `DOWN_S`, is in trouble until
it is up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from appliance.status.rates import RowKey
from appliance.status.rows import LinkRow
from appliance.status.words import TROUBLE_MS
from bus.hub import LinkView
from bus.vacancy import NO_DEVICE, NO_PEER

DOWN_S: Final = TROUBLE_MS / 1000
Counts = Mapping[str, int]


class Outage(NamedTuple):
    """An outage that is to be told: it lasts, or has `ended`. `missed` counts messages by reason."""

    seconds: float
    missed: dict[str, int]
    ended: bool = False


@dataclass(slots=True)
class _Down:
    """A link that is not up, and its counts of drops before."""

    key: RowKey
    since_s: float
    before: dict[str, int]
    told: bool = False
    told_missed: bool = False

    def missed(self, dropped: Counts) -> dict[str, int]:
        now = _missed(dropped)
        return {reason: gain for reason in now if (gain := now[reason] - self.before[reason])}


class Downs:
    """The outages of all links now."""

    def __init__(self) -> None:
        self._of: dict[LinkView, _Down] = {}

    def concerns(self, link: LinkView) -> bool:
        """Return whether a link is to be looked at: it is not up, or was not at the last look."""
        return link.state != "up" or link in self._of

    def look(self, row: LinkRow, dropped: Counts, now: float) -> Outage | None:
        """Note the state of a link and the drops of its account. Return an outage that is to be told now.

        It is told after `DOWN_S`, once more when messages are missed, and at its end.
        """
        down = self._of.get(row.link)
        if row.link.state == "up":
            self._of.pop(row.link, None)
            return None if down is None else _end(down, dropped, now)
        if down is None:
            down = self._of[row.link] = _Down((row.hub.name, row.name), now, _missed(dropped))
        missed, seconds = down.missed(dropped), now - down.since_s
        if seconds < DOWN_S or (down.told and (down.told_missed or not missed)):
            return None
        down.told, down.told_missed = True, bool(missed)
        return Outage(seconds, missed)

    def excuse(self, name: str, dropped: Counts) -> None:
        """Do not tell of these drops of the account `name`, "HUB/LINK": they are of what was told itself."""
        for down in self._of.values():
            if "/".join(down.key) == name:
                down.before = {reason: n + dropped.get(reason, 0) for reason, n in down.before.items()}

    def keep(self, rows: list[LinkRow]) -> None:
        """Forget links that are not among these."""
        here = {row.link for row in rows}
        self._of = {link: down for link, down in self._of.items() if link in here}

    def lasting(self, now: float) -> set[LinkView]:
        """Return the links that are in trouble: not up for `DOWN_S`."""
        return {link for link, down in self._of.items() if now - down.since_s >= DOWN_S}

    def ages_ms(self, now: float) -> dict[RowKey, int]:
        """Return for each link that is not up how long that is so."""
        return {down.key: int(1000 * (now - down.since_s)) for down in self._of.values()}


def _end(down: _Down, dropped: Counts, now: float) -> Outage | None:
    missed = down.missed(dropped)
    return Outage(now - down.since_s, missed, True) if down.told or missed else None


def _missed(dropped: Counts) -> dict[str, int]:
    return {reason: dropped.get(reason, 0) for reason in (NO_PEER, NO_DEVICE)}
