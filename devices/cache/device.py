"""The settings and facts of a last value cache. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bus.asking import PATTERN
from bus.key_types import BrokerUrl, BusName
from bus.needs import Need, host_needs
from bus.schema import Length, Range, Single
from bus.urls import split_url
from bus.values import VALUES, VALUES_BYTES
from devices.device import DeviceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSpec(DeviceSpec):
    """A last value cache, which gives the newest frame of each pattern to peers that ask (docs/values.md)."""

    key: ClassVar = "cache"
    help: ClassVar = "keeps the newest frame of each pattern, and gives it to peers that ask"
    SERVICE: ClassVar = "devices.cache.service:Cache"

    cache: Annotated[tuple[BusName, ...], Length(1, 64), Single(), "the buses whose values it keeps"]
    values: Annotated[
        int, Range(1, 1 << 20), "bound of the patterns that it keeps; the longest silent is forgotten first"
    ] = VALUES
    values_bytes: Annotated[int, Range(4096, 1 << 30), "bound of their frames"] = VALUES_BYTES
    services: Annotated[
        BrokerUrl | None,
        "a catalog, `tcp://HOST:PORT`: what its services publish on their PUB interfaces is kept too",
    ] = None

    def __post_init__(self) -> None:
        if len(set(self.cache)) != len(self.cache):
            raise ValueError("the same bus is listed twice in cache")

    @property
    def joins(self) -> tuple[str, ...]:
        return self.cache

    def label(self, joined: Sequence[str]) -> str:
        return f"cache of the last values of {', '.join(joined)}"

    def local(self) -> Iterator[tuple[int, ...]]:
        yield PATTERN

    def needs(self) -> Iterator[Need]:
        if self.services is not None:
            yield from host_needs(split_url(self.services).host)
