"""The listed services of a catalog, and the JSON about them for clients. Pure."""

import json
from collections.abc import Iterable, Iterator, Sequence

from bus.serving.limits import Quota
from devices.dbp.catalog.body import pack_object
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import Entry
from devices.dbp.catalog.life import Watch


class Service:
    """A listed service. `host` is the address that it registered from, `binary_time` its form of time.

    `peer` is the connection that registered it; b"" if that is silenced, or after a restart. `suspect` is the
    result of the last round.
    """

    __slots__ = ("binary_time", "entry", "host", "peer", "suspect", "watch")

    def __init__(self, entry: Entry, host: str, watch: Watch, binary_time: bool) -> None:
        self.entry, self.host, self.watch, self.binary_time = entry, host, watch, binary_time
        self.peer, self.suspect = b"", False


class Services:
    """The services by name, bounded in total and for each host. Refusals are returned by their reason."""

    def __init__(self, bounds: Bounds) -> None:
        b = bounds
        self._quota = Quota[str](
            b.services, 1, b.services_per_host, b.all_entry_bytes, "services", "name", b.all_entry_bytes // 2
        )
        self._all: dict[str, Service] = {}
        self._packed: bytes | None = None  # all of them, until one changes

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Service]:
        return iter(self._all.values())

    def find(self, name: str) -> Service | None:
        """Return the service with a name; None if none is listed."""
        return self._all.get(name)

    def add(self, service: Service) -> str:
        """List a service whose name is free. Return "", or why there is no room."""
        entry = service.entry
        refused = self._quota.take(entry.name, service.host, len(entry.packed))
        if not refused:
            self._all[entry.name] = service
            self._packed = None
        return refused

    def change(self, service: Service, entry: Entry) -> str:
        """Replace the entry of a service by one with the same name. Return "", or why there is no room."""
        name, before = entry.name, len(service.entry.packed)
        self._quota.give_back(name, service.host, before)
        refused = self._quota.take(name, service.host, len(entry.packed))
        if refused:
            self._quota.take(name, service.host, before)
            return refused
        service.entry = entry
        self._packed = None
        return ""

    def remove(self, service: Service) -> None:
        """Remove a service from the list."""
        del self._all[service.entry.name]
        self._quota.give_back(service.entry.name, service.host, len(service.entry.packed))
        self._packed = None

    def every(self) -> bytes:
        """Return the body of a reply with all services."""
        if self._packed is None:
            self._packed = _listed(self)
        return self._packed

    def some(self, names: Sequence[str]) -> bytes:
        """Return the body of a reply with the services of `names`, and a warning about those not listed."""
        asked = dict.fromkeys(names)
        found = [self._all[name] for name in asked if name in self._all]
        inactive = [name for name in asked if name not in self._all]
        return _listed(found, "inactive: " + ", ".join(inactive) if inactive else "")


def _listed(services: Iterable[Service], warning: str = "") -> bytes:
    """Return `{name: fields, ...}` as JSON, from the packed fields."""
    pairs = [json.dumps(service.entry.name).encode() + b": " + service.entry.packed for service in services]
    if warning:
        pairs.append(pack_object({"Error": warning})[1:-1])
    return b"{" + b", ".join(pairs) + b"}"
