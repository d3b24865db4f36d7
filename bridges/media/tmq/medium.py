"""The record of a side on the TMQ network: clients and brokers on the wire protocol of 2015 (docs/tmq.md)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bridges.media.medium import Medium, Taken, Word
from bus.needs import Listening, Need, dialling_needs
from bus.schema import BrokerUrl, Length, Patterns, QueueBytes, Range, Single


@dataclass(frozen=True, slots=True, kw_only=True)
class Tmq(Medium):
    """The TMQ network of some brokers, of which this side is a client."""

    LINK: ClassVar = "bridges.media.tmq.link:TmqLink"
    key: ClassVar = "tmq"
    help: ClassVar = "the clients of TMQ brokers"
    words: ClassVar = (Word("tmq", ("brokers",), "tmq:tcp://HOST:PORT", "the clients of a TMQ broker"),)

    brokers: Annotated[
        tuple[BrokerUrl, ...], Length(1, 64), Single(), "the brokers of the network, best first"
    ]
    subscribe: Annotated[Patterns, "what starts with one of these comes in; by default everything"] = ((),)
    publish: Annotated[Patterns, "what starts with one of these goes out; by default everything"] = ((),)
    host: Annotated[str, "the IPv4 address of this gateway that publishers connect to; `*` is any"] = "*"
    port: Annotated[int, Range(0, 65_535), "the TCP port that they connect to; 0 is any"] = 0
    patterns: Annotated[int, Range(1, 65_536), "most patterns declared to the broker at a time"] = 1000
    queue_bytes: Annotated[QueueBytes, "bound of the queue to each subscriber, and of what waits for one"] = (
        1 << 20
    )

    @property
    def device(self) -> str:
        return ",".join(url.removeprefix("tcp://") for url in self.brokers)

    def takes(self, node: int | None) -> Iterator[Taken]:
        if self.port:
            yield Taken(f"TCP port {self.port}", self.host)

    def needs(self) -> Iterator[Need]:
        for url in self.brokers:
            yield from dialling_needs(url, ipv4=True)
        if self.port:
            yield Listening(self.host, self.port)
