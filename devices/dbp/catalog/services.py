"""The listed services of a catalog, and the JSON that clients get. Pure."""

import json
from collections.abc import Iterable, Iterator, Sequence

from bus.serving.limits import Quota
from devices.dbp.catalog.body import pack_object
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import Entry
from devices.dbp.catalog.life import Watch


class Service:
    """A listed service. `host`: the address that it registered from. `binary_time`: its form of time.

    `peer`: the connection that registered it; b"" if that is silenced, or after a restart. `suspect`: what
    the last round found.
    """

    __slots__ = ("binary_time", "entry", "host", "peer", "suspect", "watch")

    def __init__(self, entry: Entry, host: str, watch: Watch, binary_time: bool) -> None:
        self.entry, self.host, self.watch, self.binary_time = entry, host, watch, binary_time
        self.peer, self.suspect = b"", False


class Services:
    """Services by name, bounded in all and by host. Refusals are returned by their reason."""

    def __init__(self, bounds: Bounds) -> None:
        b = bounds
        self._quota = Quota[str](b.services, 1, b.services_per_host, b.all_entry_bytes, "services", "name")
        self._all: dict[str, Service] = {}
        self._packed: bytes | None = None  # all of them, until one changes

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Service]:
        return iter(self._all.values())

    def find(self, name: str) -> Service | None:
        return self._all.get(name)

    def add(self, service: Service) -> str:
        """List a service whose name is free. Returns "", or why there is no room."""
        entry = service.entry
        refused = self._quota.take(entry.name, service.host, len(entry.packed))
        if not refused:
            self._all[entry.name] = service
            self._packed = None
        return refused

    def change(self, service: Service, entry: Entry) -> str:
        """Give a listed service another entry with the same name. Returns "", or why there is no room."""
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
        """List a service no more."""
        del self._all[service.entry.name]
        self._quota.give_back(service.entry.name, service.host, len(service.entry.packed))
        self._packed = None

    def every(self) -> bytes:
        """Return the reply with all services."""
        if self._packed is None:
            self._packed = _listed(self)
        return self._packed

    def some(self, names: Sequence[str]) -> bytes:
        """Return the reply with those of `names` that are listed, and a warning that names the others."""
        asked = dict.fromkeys(names)
        found = [self._all[name] for name in asked if name in self._all]
        inactive = [name for name in asked if name not in self._all]
        return _listed(found, "inactive: " + ", ".join(inactive) if inactive else "")


def _listed(services: Iterable[Service], warning: str = "") -> bytes:
    """Return {name: fields, ...} as JSON, without packing the fields again."""
    pairs = [json.dumps(service.entry.name).encode() + b": " + service.entry.packed for service in services]
    if warning:
        pairs.append(pack_object({"Error": warning})[1:-1])
    return b"{" + b", ".join(pairs) + b"}"
