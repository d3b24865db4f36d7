"""The settings and facts of a catalog. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Annotated, ClassVar, Literal

from bus.key_types import BrokerUrl, Path, Port
from bus.needs import Directory, Need
from bus.schema import Length, Single
from devices.dbp.ports import MONITOR
from devices.device import DeviceSpec, Listener, file_in_use, state_file


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSpec(DeviceSpec):
    """A catalog, which lists services by name (docs/dbp.md)."""

    key: ClassVar = "catalog"
    help: ClassVar = "lists services by name, and tells clients where they are"
    SERVICE: ClassVar = "devices.dbp.catalog.service:Catalog"

    catalog: Annotated[
        tuple[BrokerUrl, ...],
        Length(1, 16),
        Single(),
        "its addresses, `tcp://HOST:PORT`, as a rule with port 5246; HOST is an IPv4 address or a name. "
        "Heartbeats come by UDP to the same ports",
    ]
    strict: Annotated[
        bool, "whether services must register with all that the protocol asks for (docs/wire/dbp.md)"
    ] = False
    records: Annotated[
        Path | None,
        "file in which the listed services survive a restart; `none`: they do not; by default one in the "
        "state directory, named by the first address",
    ] = None
    beacon: Annotated[bool, "announce it once a second on the LAN (docs/dbp.md)"] = True
    mirrors: Annotated[
        Literal["nobody", "host", "all"],
        "the hosts that may get copies of messages at its socket: its own (`host`), or all that "
        "reach it (docs/dbp.md)",
    ] = "host"
    monitor_port: Annotated[Port, "the port of these copies, or the next one that is free"] = MONITOR

    @property
    def joins(self) -> tuple[str, ...]:
        return ()

    def label(self, joined: Sequence[str]) -> str:
        return "catalog"

    def listens(self) -> Iterator[Listener]:
        yield from (Listener(url, self.where) for url in self.catalog)

    def needs(self) -> Iterator[Need]:
        records = records_of(self)
        if records is not None:
            yield Directory(str(records.parent))

    def takes(self) -> Iterator[str]:
        yield from file_in_use(self.records)


def records_of(spec: CatalogSpec) -> FilePath | None:
    """Return the file in which a catalog stores the listed services; None if it stores none."""
    return state_file(spec.records, spec.catalog[0], "catalog", ".json")
