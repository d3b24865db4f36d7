"""The settings and facts of a syndication broker. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Annotated, ClassVar

from bus.key_types import BrokerUrl, Path
from bus.needs import Directory, Library, Need
from bus.schema import Length, Single
from bus.wire.pattern import Pattern
from devices.device import DeviceSpec, Flow, Listener, file_in_use, state_file
from devices.syndication.buses.rules import ProducerRule, QueryRule

EXTRA = "syndication"
RULES_MAX = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class SyndicationSpec(DeviceSpec):
    """A syndication broker, whose subscribers name producers by a query (docs/syndication.md)."""

    key: ClassVar = "syndication"
    help: ClassVar = "lets clients subscribe to producers by a query"
    SERVICE: ClassVar = "devices.syndication.service:Syndication"

    syndication: Annotated[
        tuple[BrokerUrl, ...],
        Length(1, 64),
        Single(),
        "its addresses, `tcp://HOST:PORT`; HOST is an IPv4 address or a name",
    ]

    producers: Annotated[
        tuple[ProducerRule, ...], Length(0, RULES_MAX), "frames of buses that are publications, by pattern"
    ] = ()
    queries: Annotated[
        tuple[QueryRule, ...],
        Length(0, RULES_MAX),
        "queries whose matching publications become frames of buses",
    ] = ()

    database: Annotated[
        Path | None,
        "file in which metadata survive a restart; `none`: they do not; by default one in the state "
        "directory, named by the first address (docs/syndication.md)",
    ] = None

    def __post_init__(self) -> None:
        taken = [(rule.bus, Pattern(*rule.pattern)) for rule in self.producers]
        if len(set(taken)) < len(taken):
            raise ValueError("two rules of producers have the same pattern on the same bus")

    @property
    def rules(self) -> tuple[ProducerRule | QueryRule, ...]:
        """All rules: those of producers, then those of queries."""
        return *self.producers, *self.queries

    @property
    def joins(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(rule.bus for rule in self.rules))

    def label(self, joined: Sequence[str]) -> str:
        return f"syndication broker on {', '.join(joined)}" if joined else "syndication broker"

    def patterns(self) -> Iterator[tuple[int | str, ...]]:
        yield from (rule.pattern for rule in self.rules)

    def hears(self) -> Iterator[Flow]:
        yield from (Flow(rule.bus, rule.pattern, rule.where) for rule in self.producers)

    def says(self) -> Iterator[Flow]:
        yield from (Flow(rule.bus, rule.pattern, rule.where) for rule in self.queries)

    def listens(self) -> Iterator[Listener]:
        yield from (Listener(url, self.where) for url in self.syndication)

    def needs(self) -> Iterator[Need]:
        yield Library("msgpack", "msgpack", EXTRA)
        yield Library("lark", "lark", EXTRA)
        yield Library("re2", "google-re2", EXTRA)
        database = database_of(self)
        if database is not None:
            yield Directory(str(database.parent))

    def takes(self) -> Iterator[str]:
        yield from file_in_use(self.database)


def database_of(spec: SyndicationSpec) -> FilePath | None:
    """Return the file in which a broker stores metadata; None if it stores none."""
    return state_file(spec.database, spec.syndication[0], "syndication", ".db")
