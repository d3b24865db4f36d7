"""The scheduler of `make test`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

from tests.helpers.rooms import room

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController


class Rooms(LoadScopeScheduling):
    """Gives the processes of pytest-xdist whole rooms (tests/helpers/rooms.py), in the order of the tests.

    Its mark `xdist_group` is not used: with pytest 9.2 it has no effect, and nothing says so. What a process
    has finished is forgotten. pytest-xdist keeps it, and counts all of it after each test, which took as long
    as many tests. It also gives what a process that died had finished to others; and whoever takes such a
    room gets no test, reports none, and is never asked again: the whole run would stand at its end, for ever.
    """

    def __init__(self, config: "pytest.Config", log: "Producer | None" = None) -> None:
        super().__init__(config, log)
        self._places: dict[str, int] = {}

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)

    def add_node_collection(self, node: "WorkerController", collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        self._places = self._places or {nodeid: place for place, nodeid in enumerate(collection)}

    def mark_test_complete(self, node: "WorkerController", item_index: int, duration: float = 0) -> None:
        """Forget a test that has run, and its room after the last; then give the process more, if it needs
        more."""
        nodeid = self.registered_collections[node][item_index]
        rooms = self.assigned_work[node]
        rest = rooms[room(nodeid)]
        del rest[nodeid]
        if not rest:
            del rooms[room(nodeid)]
        self._reschedule(node)

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        return sum(map(len, workload.values()))

    def _assign_work_unit(self, node: "WorkerController") -> None:
        """Give a process the next room. All processes have the same tests in the same places."""
        name, tests = self.workqueue.popitem(last=False)
        self.assigned_work[node][name] = tests
        node.send_runtest_some([self._places[nodeid] for nodeid in tests])
