"""The catalog as a service of a gateway, or of a process of its own."""

from asyncio import AbstractEventLoop
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bus.errors import LinkError
from bus.ledger import Stats
from bus.report import LISTED, Report
from bus.transports.binding import Binding
from bus.urls import split_url, url_host
from devices.dbp.beacon.sending import Sender, announcement
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.device import CatalogSpec, records_of
from devices.dbp.catalog.records import Owner, Records
from devices.dbp.catalog.server import Address, Server
from devices.dbp.catalog.services import Service as Listed
from devices.device import DeviceSpec
from devices.service import Service


class Catalog(Service):
    """A catalog. Raises `LinkError` for a wrong address. `tries` is the number of ports to try for each."""

    def __init__(
        self,
        name: str,
        spec: DeviceSpec,
        bounds: Bounds = Bounds(),  # noqa: B008 (frozen)
        tries: int = 1,
    ) -> None:
        assert isinstance(spec, CatalogSpec)
        super().__init__(name, spec)
        self._spec, self._tries = spec, tries
        self._addresses = [_address(url) for url in spec.catalog]
        self.server = Server(name, bounds, spec.strict, self._on_change, spec.mirrors, spec.monitor_port)
        path = records_of(spec)
        self.records = Records(path, name, bounds.file_bytes) if path else None
        self._inherited: Sequence[bytes] = ()
        self.beacon = Sender(())

    @property
    def urls(self) -> Sequence[str]:
        places = self.server.addresses or self._addresses
        return [f"tcp://{url_host(host or '0.0.0.0')}:{port}" for host, port in places]

    @property
    def bindings(self) -> Sequence[Binding[Any]]:
        return self.server.bindings

    @property
    def paths(self) -> Sequence[Path]:
        path = records_of(self._spec)
        return () if path is None else (path,)

    @property
    def counts(self) -> Mapping[str, int]:
        return {**self.server.counts, **(self.records.counts if self.records else {})}

    @property
    def rejected(self) -> Mapping[str, int]:
        return self.server.stats.rejected

    @property
    def ledgers(self) -> Mapping[str, Stats]:
        return {"peers": self.server.stats, "mirror": self.server.copies}

    def report(self) -> Report:
        found = [_listed(one) for one in islice(self.server.registry.services, LISTED)]
        return super().report()._replace(lists={"services": found})

    def start(self, loop: AbstractEventLoop) -> None:
        try:
            owner = Owner(
                self.server.registry.snapshot,
                lambda late: self._restore(late, loop.time()),
                self._on_fault,
            )
            stored = self.records.open(loop, owner) if self.records is not None else ()
            self._restore([*self._inherited, *stored], loop.time())
            self.server.open(loop, self._addresses, self._tries)
        except LinkError:
            self.stop()
            raise
        self.url, self.state = ", ".join(self.urls), "up"
        if self._spec.beacon:
            self._announce(loop)

    def _announce(self, loop: AbstractEventLoop) -> None:
        announced = (announcement("catalog", url, self.name) for url in self.urls)
        self.beacon = Sender([one for one in announced if one is not None])
        self.beacon.open(loop)

    def _restore(self, records: Sequence[bytes], now_s: float) -> None:
        """List the services of records. Those of the replaced catalog come first: they are newer."""
        for record in records:
            refused = self.server.registry.restore(record, now_s)
            if refused:
                self.server.stats.reject(refused)

    def _on_change(self) -> None:
        if self.records is not None:
            self.records.keep()

    def _on_fault(self, fault: str) -> None:
        self.condition = fault and f"the list is not stored: {fault}"

    def follow(self, other: Service) -> None:
        if isinstance(other, Catalog):
            self._inherited = list(other.server.registry.snapshot())
            if self.records is not None:
                self.records = other.hand_over(self.records.path) or self.records

    def hand_over(self, path: Path) -> Records | None:
        """Give away the records of a file that is open; return None if this is not that file."""
        records = self.records
        if records is None or records.path != path or not records.is_open:
            return None
        self.records = None
        return records

    def stop(self) -> None:
        self.beacon.close()
        self.server.close()
        if self.records is not None:
            self.records.close()


def _listed(service: Listed) -> dict[str, Any]:
    """Return a listed service as it stands in a status."""
    entry = service.entry
    places = (
        f"{name} {one['ip']}:{one['port']}" for name, one in islice(entry.fields["interfaces"].items(), 8)
    )
    function = entry.fields.get("function")
    return {
        "name": entry.name, "host": service.host, "function": function if isinstance(function, str) else "",
        "interfaces": list(places), "suspect": service.suspect,
    }  # fmt: skip


def _address(url: str) -> Address:
    try:
        parts = split_url(url)
    except ValueError as error:
        raise LinkError(f"{url}: {error}") from None
    if parts.scheme != "tcp":
        raise LinkError(f"{url}: a catalog listens on tcp://HOST:PORT")
    return ("" if parts.host == "*" else parts.host), parts.port
