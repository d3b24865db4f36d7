"""A service of a gateway: a peer of its buses, whichever process of the gateway runs them."""

import os
from asyncio import AbstractEventLoop
from collections.abc import Mapping, Sequence
from contextlib import suppress

from appliance.parts.bus import BusPart, bus_plan
from appliance.parts.changes import Change, Draft, Plan, PlannedLink, of_settings
from appliance.parts.device import DevicePart, Joined
from appliance.parts.patch import Patch
from appliance.parts.site import Revision, Site
from appliance.status.rows import LinkRow, waiting_rows
from bus.errors import LinkError
from bus.hub import Hub, Link
from bus.kinds import load
from bus.ledger import Stats
from bus.machine.touch import touching
from bus.report import Reporter
from devices.device import DeviceSpec
from devices.service import Service
from topologies.resolved.buses import BusAddress
from topologies.resolved.resolve import ResolvedDevice


class ServicePart(DevicePart):
    """A service, with a hub and a link for each bus: what one bus brings goes to no other."""

    def __init__(self, resolved: ResolvedDevice, site: Site, joined: Sequence[Joined]) -> None:
        super().__init__(resolved, site, joined)
        self._service = _service(self.name, self.spec)
        self._serving: Service | None = None
        self._ends = Draft[Link]([], self._plans(resolved, joined)).ends
        self._hubs = {bus: self._hub(bus) for bus in self.spec.joins}
        self._failed: list[LinkRow] = []
        self._failure = ""  # of the service itself
        self._before: Mapping[str, Stats] = {}
        self._keep()

    def _keep(self) -> None:
        """Take the service's own ledgers into the part's hub, which no message passes through."""
        for link, stats in self._service.ledgers.items():
            self.hub.keep(link, stats)

    def _replace(self, service: Service) -> None:
        """Replace the service. Connections of the closed one may still count until the next replacement."""
        for link, stats in self._before.items():
            self.hub.fold(link, stats)
        self._before = self._service.ledgers
        service.follow(self._service)
        self._service.close()
        self._service, self._serving = service, None
        self._keep()

    def _hub(self, bus: str) -> Hub:
        return Hub(f"{self.name} on {bus}")

    @property
    def hubs(self) -> list[Hub]:
        return [*self._hubs.values(), self.hub]

    @property
    def services(self) -> list[Reporter]:
        return [self._service] if self._service.urls or self._service.counts else []

    @property
    def links(self) -> list[Link]:
        return [*(end.link for end in self._ends if not isinstance(end.link, Patch)), self._service]

    @property
    def rows(self) -> list[LinkRow]:
        """The rows of the links to buses, and on each bus that of the service itself."""
        served = [self._own_row(hub) for hub in self._hubs.values() or (self.hub,)]
        waiting = waiting_rows(self.hub, self._service.bindings)
        return [*self._link_rows(self._ends), *self._failed, *served, *waiting]

    @property
    def watched(self) -> list[LinkRow]:
        dialled = [end for end in self._ends if not isinstance(end.link, Patch)]
        waited = [LinkRow(self.hub, one.name, one) for one in self._service.bindings if one.waited]
        return [*self._link_rows(dialled), self._own_row(self.hub), *waited]

    def _own_row(self, hub: Hub) -> LinkRow:
        return LinkRow(hub, hub.row(self._service.name), self._service, (), self._failure, far="inside")

    def _link_rows(self, ends: Sequence[PlannedLink[Link]], failure: str = "") -> list[LinkRow]:
        return [self._link_row(end.plan.place, end.link, failure) for end in ends]

    def _link_row(self, bus: str, link: Link, failure: str) -> LinkRow:
        hub = self._hubs[bus]
        return LinkRow(hub, hub.row(link.name), link, (), failure, label=f"bus {bus}", far="inside")

    def _plans(self, resolved: ResolvedDevice, joined: Sequence[Joined]) -> list[Plan[Link]]:
        buses = {part.name: part for part in joined if isinstance(part, BusPart)}
        limits = dict(resolved.limits)
        return [self._plan(bus, limits.get(bus), buses.get(bus)) for bus in resolved.spec.joins]

    def _plan(self, bus: str, limits: tuple[int, int] | None, part: BusPart | None) -> Plan[Link]:
        """Plan the link to a bus. Raises `LinkError` for a bus of another gateway."""
        if part is not None:
            return Plan(bus, {"address": None}, lambda: Patch(self.title, lambda: part.plain))
        url = self.site.local_socket(bus, False)
        if limits is None or url is None:
            raise LinkError(f"device {self.name}: bus {bus} does not run on {self.site.gateway}")
        return bus_plan(bus, "dial", BusAddress(False, url, *limits))

    def start(self, loop: AbstractEventLoop) -> list[Change]:
        return [*self._open(self._ends, loop), *self._serve(loop)]

    def _open(self, ends: Sequence[PlannedLink[Link]], loop: AbstractEventLoop) -> list[Change]:
        self.forgive()
        failed, self._failed = list[Change](), []
        for end in ends:
            trouble = self.attempt(end.plan.place, end.link, self._hubs[end.plan.place], loop)
            if trouble:
                self._ends = [other for other in self._ends if other is not end]
                self._failed += self._link_rows([end], trouble[0].detail)
            failed += trouble
        return failed

    def _serve(self, loop: AbstractEventLoop) -> list[Change]:
        self._failure = ""
        try:
            for hub in self._hubs.values():
                self._service.open(hub, loop)
            self._service.start(loop)
        except LinkError as error:
            self._service.close()
            self._failure = str(error)
            for hub in self._hubs.values():
                self.miss(hub, self._service.name)
            return [Change("failed", self.title, detail=self._failure)]
        self._serving = self._service
        return []

    def revise(self, resolved: ResolvedDevice, joined: Sequence[Joined]) -> Revision:
        """Return the change to the service as `resolved` has it. A service that does not adapt makes way."""
        spec = resolved.spec
        names, renewed = self.differing(resolved), self.has_renewed(resolved)
        draft = Draft(self._ends, self._plans(resolved, joined))
        adapts = self._serving is not None and bool(names) and not renewed and self._service.adapts(spec)
        before = self.resolved if adapts else None
        stays = self._serving is not None and (adapts or not names)
        service = self._service if stays else _service(self.name, spec)
        return Revision(
            [
                *of_settings(self.title, names),
                *draft.changes(self.title),
            ],
            lambda: self._settle(resolved, joined, draft, service),
            lambda loop: self._go_on(draft, loop, before),
            lambda: {"": not renewed and self._service.adapts(spec), **draft.fates()},
        )

    def _settle(
        self, resolved: ResolvedDevice, joined: Sequence[Joined], draft: Draft[Link], service: Service
    ) -> None:
        if service is not self._service:
            self._replace(service)
        else:
            service.leave(resolved.spec)
        draft.close()
        self._take(resolved, joined)
        self._ends = draft.ends
        self._hubs = {bus: self._hubs.get(bus) or self._hub(bus) for bus in resolved.spec.joins}

    def _go_on(
        self, draft: Draft[Link], loop: AbstractEventLoop, before: ResolvedDevice | None
    ) -> list[Change]:
        for end in draft.staying():
            if isinstance(end.link, Patch):
                end.link.follow()
        failed = self._open(draft.fresh(), loop)
        if before is not None:
            return [*failed, *self._adapt(before, loop)]
        return failed if self._serving else [*failed, *self._serve(loop)]

    def _adapt(self, before: ResolvedDevice, loop: AbstractEventLoop) -> list[Change]:
        try:
            self._service.adapt(self.spec, loop)
        except LinkError as error:
            self.resolved = before  # so that the next change tries again
            return [Change("failed", self.title, detail=str(error))]
        return []

    def close(self) -> None:
        super().close()
        for end in self._ends:
            end.link.close()


def _service(name: str, spec: DeviceSpec) -> Service:
    """Make a service, not yet open. Raises `LinkError` for settings that can never work.

    It is made on no event loop: a file system that hangs is found here, and not when the service starts.
    """
    made: Service = load(spec.SERVICE)(name, spec)
    for path in made.paths:
        with suppress(OSError), touching(str(path)):
            os.stat(path.parent)
    return made
