"""The scheduler of `make test`."""

from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

from tests.helpers.rooms import room

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


class Rooms(LoadScopeScheduling):
    """Gives the processes of pytest-xdist whole rooms (tests/helpers/rooms.py), in the order of the tests.

    Its mark `xdist_group` is not used: with pytest 9.2 it has no effect, and nothing says so.
    """

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)

    def remove_node(self, node: "WorkerController") -> str | None:
        """Give what a process that died had not run to others.

        pytest-xdist gives them its finished rooms as well. Whoever takes one of those gets no test, reports
        none, and is never asked again: the whole run would stand at its end, for ever.
        """
        its_own = self.assigned_work[node]
        for name in [name for name, tests in its_own.items() if all(tests.values())]:
            del its_own[name]
        return super().remove_node(node)
