"""The record of a side on the TMQ network: clients and brokers on the wire protocol of 2015 (docs/tmq.md)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from bridges.media.medium import Medium, Passing, Taken, Word
from bus.key_types import Broker, Patterns, QueueBytes
from bus.needs import Listening, Need, dialling_needs
from bus.schema import Check, Length, Range, Single
from bus.urls import are_loopback, check_host, split_url


def _check_host(host: str) -> None:
    if host != "*":
        check_host(host)
    if ":" in host:
        raise ValueError(f'"{host[:64]}" is an IPv6 address: TMQ knows only IPv4 addresses and names')


@dataclass(frozen=True, slots=True, kw_only=True)
class Tmq(Medium):
    """The TMQ network of some brokers, of which this side is a client."""

    LINK: ClassVar = "bridges.media.tmq.link:TmqLink"
    key: ClassVar = "tmq"
    unrecorded: ClassVar = "`tshark -i any` records its connections"
    help: ClassVar = "the clients of TMQ brokers"
    words: ClassVar = (
        Word(
            "tmq",
            ("brokers",),
            "tmq:HOST:PORT?subscribe=fridge",
            "the clients of a TMQ broker",
            unused=("publish",),
        ),
    )
    selective: ClassVar = True
    plain: ClassVar = True

    brokers: Annotated[
        Annotated[tuple[Broker, ...], Length(1, 64), Single()] | None,
        "the brokers of the network, best first; by default all of this file",
    ] = None
    subscribe: Annotated[Patterns, "what starts with one of these comes in; by default everything"] = ((),)
    publish: Annotated[Patterns, "what starts with one of these goes out; by default everything"] = ((),)
    host: Annotated[
        str,
        Check(_check_host, "an IPv4 address or host name"),
        "the address of this gateway that publishers connect to; `*` is any, 127.0.0.1 if all brokers are "
        "at loopback",
    ] = "*"
    port: Annotated[int, Range(0, 65_535), "the TCP port that they connect to; 0 is any"] = 0
    patterns: Annotated[int, Range(1, 65_536), "most patterns declared to the broker at a time"] = 1000
    queue_bytes: Annotated[QueueBytes, "bound of the queue to each subscriber, and of what waits for one"] = (
        1 << 20
    )

    @property
    def device(self) -> str:
        brokers = ("all",) if self.brokers is None else self.brokers
        return ",".join(broker.removeprefix("tcp://") for broker in brokers)

    def label(self) -> str:
        return "tmq all brokers" if self.brokers is None else f"tmq {self.device}"

    def mute(self) -> "Tmq":
        return replace(self, subscribe=())  # so publishers do not meet a subscriber that is soon gone

    @property
    def passing(self) -> Passing:
        return Passing(self.subscribe, self.publish, ("subscribe", "publish"))

    @property
    def tmq_brokers(self) -> tuple[str, ...] | None:
        return self.brokers

    def takes(self, node: int | None) -> Iterator[Taken]:
        if self.port:
            yield Taken(f"TCP port {self.port}", self.host)

    def lets_in(self) -> Iterator[str]:
        if self.host != "*" or not are_loopback(split_url(url).host for url in self.brokers or ()):
            yield self.host

    def needs(self) -> Iterator[Need]:
        for broker in self.brokers or ():
            yield from dialling_needs(broker, ipv4=True)
        if self.port or self.host != "*":
            yield Listening(self.host, self.port)
