"""The settings and facts of a syndication broker. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bus.needs import Library, Need
from bus.schema import BrokerUrl, Length, Single
from devices.device import DeviceSpec, Listener

EXTRA = "syndication"


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

    @property
    def joins(self) -> tuple[str, ...]:
        return ()

    def label(self, joined: Sequence[str]) -> str:
        return "syndication broker"

    def listens(self) -> Iterator[Listener]:
        yield from (Listener(url, self.where) for url in self.syndication)

    def needs(self) -> Iterator[Need]:
        yield Library("msgpack", "msgpack", EXTRA)
        yield Library("lark", "lark", EXTRA)
        yield Library("re2", "google-re2", EXTRA)
