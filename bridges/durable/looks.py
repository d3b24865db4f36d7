"""The looks at an open journal: what is kept for each gateway, how that gets less, what ends have lost."""

from collections.abc import Iterable, Mapping

from bridges.durable.decline import Decline
from bridges.durable.end import End
from bridges.durable.work import Worked
from bus.journal.groups import Backlog

Losses = Mapping[str, Mapping[str, int]]


class Looks:
    """The looks at the journal that is kept for `gateways`. `backlogs` are what is kept for each, as of the
    last one, and `declines` how they get less."""

    def __init__(self, gateways: Iterable[str]) -> None:
        self.backlogs: Mapping[str, Backlog] = {}
        self.declines = {one: Decline() for one in gateways}
        self._losses: Losses = {}

    def begin(self, losses: Losses) -> None:
        """Begin with what ends had lost when the journal was opened."""
        self._losses = losses

    def look(self, worked: Worked, now_s: float) -> None:
        """Take new backlogs."""
        self.backlogs = worked.backlogs
        for name, backlog in worked.backlogs.items():
            self.declines[name].note(now_s, backlog.messages)

    def count(self, worked: Worked, ends: Iterable[End]) -> None:
        """Count at the ends what they have lost since the last time."""
        for end in ends:
            before = self._losses.get(end.gateway, {})
            for reason, count in worked.losses.get(end.gateway, {}).items():
                end.gave_up(count - before.get(reason, 0), reason)
        self._losses = worked.losses
