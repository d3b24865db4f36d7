"""A reload that is ready to be made: all that follows what runs, with nothing changed yet."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from appliance.parts.build import Built, Part
from appliance.parts.changes import Change, of_process
from appliance.web.service import Prepared
from bus.keys import Keyring
from topologies.model import Topology
from topologies.resolved.resolve import Resolved


class Drawing(NamedTuple):
    """The picture of a topology."""

    topology: Topology
    record: dict[str, Any]


class Following(NamedTuple):
    """A reload that is ready to be made: the records that run now, those that follow, and the new parts.

    `drawing` is the picture of what follows, if one has been drawn of what runs, and `page` what the status
    page needs of files, as `page_before` for the one that runs; `ring` are the keys that sign announcements.
    """

    before: Resolved
    resolved: Resolved
    built: Built
    drawing: Drawing | None
    page: Prepared
    page_before: Prepared
    ring: Keyring | None

    def changes(self, old: Mapping[str, Part], foreseen: bool = False) -> list[Change]:
        """Return what differs in the parts, and beside them."""
        beside = of_process(self.before, self.resolved)
        if self.page.spec == self.page_before.spec and self.page.stamps != self.page_before.stamps:
            beside.append(Change("changed", "gateway", detail="files of status"))
        return [*self.built.changes(old, foreseen), *beside]


def drawn(topology: Topology) -> Drawing:
    """Draw the picture of a topology."""
    from topologies.picture.drawing import draw  # late: for memory, where nobody looks at the page

    return Drawing(topology, draw(topology).as_record())
