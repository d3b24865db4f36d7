"""The scheduler of `make test`."""

from xdist.scheduler import LoadScopeScheduling

from tests.helpers.rooms import room


class Rooms(LoadScopeScheduling):
    """Gives the processes of pytest-xdist whole rooms (tests/helpers/rooms.py), in the order of the tests.

    Its mark `xdist_group` is not used: with pytest 9.2 it has no effect, and nothing says so.
    """

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)
