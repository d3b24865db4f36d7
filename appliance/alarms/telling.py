"""The telling of people: the outlets of a gateway, and the notices that are on their way by them."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from appliance.alarms.notice import Notice
from appliance.status.rows import LinkRow
from bus.hub import Hub
from topologies.model.alarms import OutletSpec

if TYPE_CHECKING:
    from appliance.alarms.outlets.outlet import Outlet

MakeOutlet = Callable[[str, OutletSpec, Callable[[Notice, bool], None]], "Outlet"]


class Teller:
    """The outlets by name. `through(outlet, notice, told)` is called on the loop when people were told of a
    notice, or the outlet has given up."""

    def __init__(self, make: MakeOutlet, through: Callable[[str, Notice, bool], None]) -> None:
        self.hub = Hub("alarms")
        self._make, self._on_through = make, through
        self._outlets: dict[str, tuple[OutletSpec, Outlet]] = {}
        self._under_way = set[tuple[str, Notice]]()
        self._loop: AbstractEventLoop | None = None

    def follow(self, outlets: Sequence[tuple[str, OutletSpec]], loop: AbstractEventLoop) -> None:
        """Have these outlets from now on, and no others. Raises `LinkError`."""
        self._loop = loop
        wanted = dict(outlets)
        for name in [name for name, (spec, _) in self._outlets.items() if wanted.get(name) != spec]:
            self._end(name)
        for name, spec in wanted.items():
            if name not in self._outlets:
                outlet = self._make(name, spec, partial(self._done, name))
                self.hub.keep(name, outlet.stats)
                outlet.open(self.hub, loop)
                self._outlets[name] = spec, outlet
        self._outlets = {name: self._outlets[name] for name in wanted}  # as in the file

    def _end(self, name: str) -> None:
        outlet = self._outlets.pop(name)[1]
        outlet.close()
        self.hub.fold(name, outlet.stats)
        self._under_way = {one for one in self._under_way if one[0] != name}

    def tell(self, name: str, notice: Notice) -> None:
        """Give a notice to an outlet, unless it has it, or is not to tell of such a state."""
        if name not in self._outlets or (name, notice) in self._under_way:
            return
        spec, outlet = self._outlets[name]
        if notice.state in spec.states:
            self._under_way.add((name, notice))
            if not outlet.offer(notice):
                self._through(name, notice, False)

    def _done(self, name: str, notice: Notice, told: bool) -> None:
        """Hear, in any thread, that a notice is through."""
        with suppress(RuntimeError):  # the loop has closed
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._through, name, notice, told)

    def _through(self, name: str, notice: Notice, told: bool) -> None:
        if (name, notice) in self._under_way:
            self._under_way.discard((name, notice))
            self._on_through(name, notice, told)

    @property
    def rows(self) -> list[LinkRow]:
        """The rows of the outlets in a status."""
        return [
            LinkRow(self.hub, name, outlet, label=f"outlet {name}", far="inside")
            for name, (_, outlet) in self._outlets.items()
        ]

    def close(self) -> None:
        """End all outlets. What waits is dropped, and told again after a restart. Idempotent."""
        for name in list(self._outlets):
            self._end(name)
