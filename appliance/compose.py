"""The composition root: one gateway's part of a topology as running parts, and their change at run time."""

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appliance.alarms.of_process import AlarmsOfProcess
from appliance.following import Drawing, Following, drawn
from appliance.health.concerns import of_brokers, of_certificates, of_claims, of_parts, of_twins
from appliance.health.watch import HealthWatch
from appliance.history.recording import Recording
from appliance.log.unpublished import UnpublishedLines
from appliance.monitor import SCAN_S, Monitor
from appliance.parts.build import Builder
from appliance.parts.changes import Change
from appliance.parts.publisher import Publisher
from appliance.parts.site import Site
from appliance.plant.presence import Presence
from appliance.plant.watch import PlantWatch
from appliance.rounds import Rounds
from appliance.status.candidates import claims, reports_of_brokers, twins
from appliance.status.health import Concern
from appliance.status.labels import Labels, titles
from appliance.status.neighbours import Neighbours
from appliance.status.rows import LinkRow
from appliance.status.transit import Transit
from appliance.status.values import values_of
from appliance.status.view import Around, Besides, Sampled, View
from appliance.version import version
from appliance.web.service import StatusPage
from appliance.web.service import prepare as prepare_page
from bus.hub import Hub, Link
from bus.keys import ring_of
from bus.machine.wake_hook import WakefulLoop
from bus.names import table_of
from bus.steps import PORTION
from bus.transports import budget, seats
from topologies.model import Topology
from topologies.resolved.files import paths_of
from topologies.resolved.resolve import Resolved

if TYPE_CHECKING:
    from appliance.alarms.keeping import Keeper
    from appliance.alarms.telling import MakeOutlet
    from appliance.alarms.watch import AlarmWatch


class Appliance:
    """The parts of a gateway that this process runs; only the parts named in `only`, if it is not empty.

    With `only`, buses also listen on local sockets in `sockets`, where bridges in other processes
    of the gateway meet them. `clock` is the loop's, in seconds, where time is simulated. `keeper` has the
    states of alarms over a restart, by default a file, and `make_outlet` makes what tells people of them.
    Raises `TopologyError` for a part that is not there.
    """

    def __init__(
        self,
        resolved: Resolved,
        only: Collection[str] = (),
        sockets: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        keeper: "Keeper | None" = None,
        make_outlet: "MakeOutlet | None" = None,
    ) -> None:
        self.gateway, self.resolved = resolved.gateway, resolved
        self._only = frozenset(only)
        self.monitor = Monitor(self.gateway, self)
        self.health, self._recording = HealthWatch(self.monitor.record), Recording()
        self.alarms = AlarmsOfProcess(partial(self._make_alarms, keeper, make_outlet))
        self._ring = ring_of(paths_of(resolved.keys))
        if resolved.alarms.alarms:
            self.alarms.load()
        self.plant = PlantWatch(self.gateway, self.monitor.record, clock=clock)
        self.plant.follow(resolved.topology, self._ring)
        where = sockets if only else None
        self._site = Site(self.gateway, where, self.monitor.record, clock, self.plant.hear)
        self.parts = Builder(resolved, self._site, self._only, {}).build().parts
        self._failed: frozenset[str] = frozenset()
        self._loop: AbstractEventLoop | None = None
        self._rounds = Rounds(self._look, SCAN_S)
        self._publisher = Publisher(self._site, clock)
        self._unpublished = UnpublishedLines(self.gateway)
        self._publish()
        self._presence = Presence(self, time.time_ns(), version())
        self.page, self._prepared = StatusPage(), prepare_page(resolved.here.status, resolved.here.address)
        self.neighbours, self._transit = Neighbours(self.gateway), Transit()
        self._drawing: Drawing | None = None

    def _make_alarms(self, keeper: "Keeper | None", make_outlet: "MakeOutlet | None") -> "AlarmWatch":
        from appliance.alarms.keeping import FileKeeper, state_path
        from appliance.alarms.outlets.making import outlet_of
        from appliance.alarms.watch import AlarmWatch

        kept = keeper or FileKeeper(state_path(self.topology.name, self.gateway, self._only))
        return AlarmWatch(self.gateway, self.monitor.record, kept, make_outlet or outlet_of)

    @property
    def topology(self) -> Topology:
        """The whole system, as it is shown; parts take their records only."""
        return self.resolved.topology

    @property
    def names(self) -> Sequence[str]:
        """All names of tokens that the topology knows."""
        return self.resolved.names

    @property
    def page_url(self) -> str:
        """The address of the status page; "" if there is none."""
        return self.page.url

    def _publish(self) -> None:
        """Publish events and log lines of this process on the buses that the topology names."""
        self._publisher.follow(self.parts, [*self.resolved.events, *self.resolved.logs])

    def _listen(self) -> None:
        """Keep log lines from now on, if they are to be published."""
        self._unpublished.listen(bool(self.resolved.logs), without_events=bool(self.resolved.events))

    def open(self, loop: AbstractEventLoop) -> None:
        """Open everything, buses before bridges. Raises `LinkError` with nothing left open."""
        self._loop = loop
        self._settle_shares()
        self._listen()
        try:
            for part in self.parts.values():
                part.open(loop)
        except BaseException:
            self.close()
            raise
        self._watch_alarms()
        self._show()
        self._rounds.open(loop)

    def _watch_alarms(self) -> None:
        """Watch the alarms of the topology, in the parts as they are now."""
        assert self._loop is not None
        names, resolved = table_of(tuple(self.names)), self.resolved
        watched = resolved.alarms, names, resolved.quantities, self.parts, self._loop, self._ring
        self.alarms.follow(*watched)

    def _settle_shares(self) -> None:
        """Settle what this process takes of its machine, and whom it keeps connected, by the topology."""
        here = self.resolved.here
        seats.PROCESS.revise(here.keep_connections_of)
        budget.PROCESS.revise(budget.default_bytes() if here.memory_bytes is None else here.memory_bytes)
        if isinstance(self._loop, WakefulLoop):
            self._loop.poll_busily(here.busy_poll_us)

    def _show(self) -> None:
        """Serve the status page as the topology says."""
        assert self._loop is not None
        self.page.follow(self._prepared, self.view(), self._loop)

    def _look(self, now_s: float) -> Iterator[None]:
        """Look at everything; with pauses where that is much."""
        pauses = len(self.rows()) > PORTION
        for _ in self._steps(now_s):
            if pauses:
                yield

    def _steps(self, now_s: float) -> Iterator[None]:
        assert self._loop is not None
        self.health.look(now_s, lambda: self._concerns(now_s))
        yield
        yield from self.monitor.steps(now_s)
        yield
        self.alarms.look(now_s, self.rows, self.monitor.rates.now, self.monitor.accounts)
        yield
        self._transit.sample(self.hubs(), self._loop)
        if self.page.url:
            self._record(now_s)
        yield
        yield from self._presence.look(now_s, self._loop, self._speaks)

    @property
    def _speaks(self) -> bool:
        """Whether this process speaks for its gateway: it runs all of it, and can sign if there are keys."""
        return not self._only and (self._ring is not None or not self.topology.keys)

    def _record(self, now_s: float) -> None:
        """Go on with the curves, which only the page shows."""
        self._recording.look(
            now_s, time.time_ns, self.monitor.rates.now,
            self.monitor.accounts, self._transit.as_records, self._values, self.labels,
        )  # fmt: skip

    def labels(self) -> Labels:
        """Return the names of links for people."""
        return Labels(self.rows(), titles(self.parts.values()))

    def _values(self) -> list[dict[str, Any]]:
        """Return the last values as a status has them."""
        reports = [service.report() for part in self.parts.values() for service in part.services]
        if not any(report.values for report in reports):
            return []
        rows = values_of(reports, table_of(tuple(self.names)), self.resolved.quantities)["values"]
        return list(rows)

    def _concerns(self, now_s: float) -> Iterator[Concern]:
        """Yield what is wrong now, in this process and with the gateways that brokers here have heard."""
        yield from self.monitor.concerns(now_s)
        yield from self.alarms.concerns()
        yield from of_brokers(self.parts.values())
        yield from of_parts(self.parts.values())
        yield from of_certificates(self.resolved.lasting, time.time())
        reports = reports_of_brokers(self.parts.values())
        hosts = twins(reports)
        yield from of_claims(claims(reports), self.gateway)
        yield from of_twins(hosts)
        yield from self.plant.concerns(self.topology.digest, hosts)

    def close(self) -> None:
        """Close everything, bridges before buses, so that nothing new enters. Idempotent."""
        self._rounds.close()
        self._unpublished.listen(False)
        self._transit.close()
        self.plant.close()
        self.page.close()
        self.alarms.close()
        self._publisher.close()
        for part in reversed(self.parts.values()):
            part.close()

    def hubs(self) -> Iterable[Hub]:
        hubs = (hub for part in self.parts.values() for hub in part.hubs)
        return [*hubs, *self._publisher.hubs, *self.alarms.hubs]

    def say(self, events: list[bytes], before: Callable[[], None]) -> bool:
        """Publish these events, and the lines of the log that wait. Return whether there was anything.

        `before` is called first if there is.
        """
        assert self._loop is not None
        lines = self._unpublished.drain()
        if events or lines:
            before()
        self._publisher.publish(self.resolved.events, events)
        self._publisher.publish(self.resolved.logs, lines)
        self._publisher.tick(self._loop)
        return bool(events or lines)

    def links(self) -> list[Link]:
        return [link for part in self.parts.values() for link in part.links]

    def rows(self) -> list[LinkRow]:
        """Return the rows of all links in a status."""
        return [*(row for part in self.parts.values() for row in part.rows), *self.alarms.rows]

    def watched_links(self) -> list[LinkRow]:
        """Return the links to media, and the devices. Those of a bus only log: their peers come and go."""
        watched = (row for part in self.parts.values() for row in part.watched)
        return [*watched, *self.page.watched, *self.alarms.rows]

    def _picture(self) -> dict[str, Any]:
        """Return the picture of the topology, drawn at the first request. Any thread may call this."""
        topology, drawing = self.topology, self._drawing
        if drawing is None or drawing.topology is not topology:  # a reload came between
            drawing = self._drawing = drawn(topology)
        return drawing.record

    def view(self) -> View:
        """Return what a status shows of this process."""
        return View(
            program="run",
            name=self.topology.name,
            gateway=self.gateway,
            started_ns=self._presence.started_ns,
            product=self._presence.product,
            prepare=self._picture,
            parts=lambda: self.parts.values(),
            besides=lambda: Besides(
                [*self._publisher.hubs, *self.page.hubs, *self.alarms.hubs],
                [*self.page.rows, *self.alarms.rows],
                services=self.page.services,
            ),
            around=self._around,
            sampled=self._sampled,
            curves=self._recording.picked,
            plant=self.plant,
            acknowledge=self.alarms.acknowledge,
        )

    def _sampled(self) -> Sampled:
        monitor = self.monitor
        transit = self._transit.as_records()
        alarms = self.alarms.records()
        return Sampled(monitor.events, monitor.rates.now, transit, monitor.down_ms, self.health.now, alarms)

    def _around(self, claims: Mapping[str, int]) -> Around:
        gateways = {name: gateway.address for name, gateway in self.topology.gateways.items()}
        silent = {
            name: why for name, why in self.neighbours.silent(self.topology, claims).items()
            if name not in self.plant.answering
        }  # fmt: skip
        page, picture, copies = self.page.url, self._picture(), self.resolved.copies
        resolved = self.resolved
        return Around(
            gateways, silent, self.names, page, picture, copies, resolved.quantities, resolved.lasting,
            self.topology.digest,
        )  # fmt: skip

    def foresee(self, resolved: Resolved) -> tuple[list[Change], list[str]]:
        """Return what a reload would change, and the parts in which nothing differs.

        For an appliance that is not open; it is of no use after that. Raises as `prepare` does.
        """
        assert self._loop is None
        following = self.prepare(resolved)
        changes = following.changes(self.parts, foreseen=True)
        touched = {change.part for change in changes}
        return changes, [title for title in following.built.revisions if title not in touched]

    def prepare(self, resolved: Resolved) -> Following:
        """Compare records and make new parts and links, with nothing changed yet. Any thread may call this.

        Raises `TopologyError` for a part that is not there, `LinkError` for what can never work.
        """
        built = Builder(resolved, self._site, self._only, self.parts, self._failed).build()
        ring = ring_of(paths_of(resolved.keys))
        drawing = None if self._drawing is None else drawn(resolved.topology)
        page = prepare_page(resolved.here.status, resolved.here.address)
        if resolved.alarms.alarms:
            self.alarms.load()
        table_of(tuple(resolved.names))  # which is kept: the loop would stand for it, with many names
        return Following(self.resolved, resolved, built, drawing, page, self._prepared, ring)

    def change(self, following: Following) -> list[Change]:
        """Make a reload, link by link, between two batches: links that stay keep their pipes.

        Return what differs, then what failed.
        """
        assert self._loop is not None
        assert following.before is self.resolved  # it has been prepared for what runs
        differing, built = following.changes(self.parts), following.built
        built.close(self.parts)
        self.parts, self.resolved, self._drawing = built.parts, following.resolved, following.drawing
        self._rounds.begin_anew()
        self._prepared, self._ring = following.page, following.ring
        self._settle_shares()
        self._show()
        failed = built.open(self._loop)
        self._failed = frozenset(change.part for change in failed)
        self._watch_alarms()
        self.plant.follow(self.topology, self._ring)
        self._publish()
        self._listen()
        broken = {(change.part, change.end) for change in failed}
        whole = [one for one in differing if not broken & {(one.part, ""), (one.part, one.end)}]
        return whole + failed
