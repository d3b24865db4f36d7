"""The broker that a gateway runs."""

from asyncio import AbstractEventLoop
from functools import partial
from typing import TYPE_CHECKING

from appliance.parts.announcing import Announcer, said_changes
from appliance.parts.changes import Change, differing, of_settings
from appliance.parts.site import BasePart, Revision, Site
from appliance.status.rows import LinkRow, waiting_rows
from bus.announcements import Hear
from bus.errors import LinkError
from bus.keys import Keyring, ring_of
from bus.report import Reporter
from bus.schema import settings_of
from devices.dbp.beacon.sending import announcement
from topologies.resolved.brokers import ResolvedBroker
from topologies.resolved.files import paths_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bus.leases.service import LeasingBroker
    from bus.tmq.wire import Address
    from bus.transports.secure import Security


class BrokerPart(BasePart):
    """A broker of a topology. Its peers are the other brokers of the file."""

    kind = "broker"

    def __init__(self, resolved: ResolvedBroker, site: Site) -> None:
        self.resolved, self.service = resolved, _service(resolved, site.hear)
        super().__init__(resolved.name, site, self.service.hub)
        self._announcer = Announcer()

    @property
    def services(self) -> list[Reporter]:
        return [self.service]

    @property
    def rows(self) -> list[LinkRow]:
        """The rows of addresses that are not there yet."""
        return waiting_rows(self.hub, self.service.broker.bindings)

    @property
    def watched(self) -> list[LinkRow]:
        return [LinkRow(self.hub, one.name, one) for one in self.service.broker.bindings if one.waited]

    def revise(self, resolved: ResolvedBroker) -> Revision:
        """Return the change to the broker as `resolved` has it. A broker that could not open is made anew.

        Raises `LinkError` for keys that are of no use.
        """
        ring, old = ring_of(paths_of(resolved.keys)), self.resolved
        left = [url for url in old.urls if url not in resolved.urls and self.service.broker.listens(url)]
        come = [url for url in resolved.urls if not self.service.broker.listens(url)]
        stay = [url for url in resolved.urls if url not in come]
        renewed = [url for url in stay if _secured(old, url) != _secured(resolved, url)]
        lines = [Change("removed", self.title, f"listen {url}") for url in left]
        lines += [Change("added", self.title, f"listen {url}") for url in come]
        lines += [Change("changed", self.title, f"listen {url}", "tls") for url in renewed]
        lines += said_changes(self.title, old.spec.listen, resolved.spec.listen)
        lines += of_settings(self.title, self._differing(resolved))
        if not self.service.is_open:
            service = _service(resolved, self.site.hear)
            return Revision(lines, lambda: self._replace(resolved, service), self.start)
        settle = partial(self._settle, resolved, left + renewed, ring)
        secured = {url: _security(resolved, url) for url in come + renewed}
        return Revision(lines, settle, lambda loop: self._go_on(secured, loop))

    def _differing(self, new: ResolvedBroker) -> list[str]:
        """Return the words for what differs beside the addresses."""
        old = self.resolved
        names = differing(settings_of(old.spec), settings_of(new.spec))
        names += ["peers"] if new.peers != old.peers else []
        names += ["keys"] if new.keys != old.keys else []
        return [name for name in names if name not in ("on", "listen")]

    def _replace(self, resolved: ResolvedBroker, service: "LeasingBroker") -> None:
        self.close()
        self.resolved, self.service, self.hub = resolved, service, service.hub

    def _settle(self, resolved: ResolvedBroker, left: list[str], ring: Keyring | None) -> None:
        self.resolved = resolved
        for url in left:
            self.service.broker.leave(url)
        self.service.revise(list(resolved.peers), resolved.spec, ring, resolved.tls)

    def _go_on(self, come: "Mapping[str, Security | None]", loop: AbstractEventLoop) -> list[Change]:
        failed = [change for url, security in come.items() for change in self._attempt(url, security)]
        self._announce(loop)
        return failed

    def _announce(self, loop: AbstractEventLoop) -> None:
        name, listens = f"{self.resolved.system}/{self.name}", self.service.broker.listens
        urls = [one.url for one in self.resolved.spec.listen if one.beacon and listens(one.url)]
        self._announcer.say(loop, (announcement("broker", url, name) for url in urls))

    def _attempt(self, url: str, security: "Security | None") -> list[Change]:
        try:
            self.service.broker.listen(url, security)
        except LinkError as error:
            return [Change("failed", self.title, f"listen {url}", str(error))]
        return []

    def start(self, loop: AbstractEventLoop) -> list[Change]:
        try:
            self.service.open(loop)
        except LinkError as error:
            return [Change("failed", self.title, detail=str(error))]
        self._announce(loop)
        return []

    def announce(self, frame: bytes, told: "set[Address]") -> None:
        self.service.announce(frame)

    def close(self) -> None:
        self._announcer.close()
        self.service.close()


def _service(resolved: ResolvedBroker, hear: Hear) -> "LeasingBroker":
    from bus.leases.service import LeasingBroker  # late: few gateways run a broker

    return LeasingBroker(
        resolved.urls,
        list(resolved.peers),
        resolved.spec,
        ring_of(paths_of(resolved.keys)),
        resolved.tls,
        name=f"broker {resolved.name}",
        hear=hear,
    )


def _security(resolved: ResolvedBroker, url: str) -> "Security | None":
    from bus.tmq.broker.places import security_of

    return security_of(url, resolved.tls.get(url))


def _secured(resolved: ResolvedBroker, url: str) -> tuple[object, ...]:
    """Return the TLS of an address, and the stamps that tell that one of its files has been renewed."""
    return resolved.tls.get(url), dict(resolved.certificates).get(url)
