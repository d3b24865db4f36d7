"""The record of a link to an SP bus outside the file."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from bus.key_types import AnyUrl, Bytes, Origin
from bus.needs import Need, dialling_needs, listening_needs
from bus.schema import Length, Single
from bus.transports.options import (
    MESSAGE_BYTES,
    QUEUE_BYTES,
    STREAMS,
    Tls,
    check_fit,
    check_limits,
    check_origins,
    check_tls,
)
from bus.urls import check_dial, split_url

if TYPE_CHECKING:
    from bridges.media.shedding import Shed
    from bus.hub import Link

from bridges.media.medium import Medium


@dataclass(frozen=True, slots=True, kw_only=True)
class Sp(Medium):
    """An address outside this file: another appliance, or any SP bus."""

    key: ClassVar = "url"
    unrecorded: ClassVar = "`tshark -i any` records its connections"
    opaque: ClassVar = True
    signs: ClassVar = True
    help: ClassVar = "an address outside this file"

    SHORT: ClassVar = "address"
    address: Annotated[AnyUrl, "`tcp://`, `ipc://`, `ws://`, `wss://`, `tls+tcp://` or `inproc://`"]
    mode: Annotated[Literal["dial", "listen"], "who opens the connection"] = "dial"
    queue_bytes: Annotated[Bytes | None, "bound of the queue to each peer"] = None
    message_bytes: Annotated[Bytes | None, "longest message taken from a peer, without its envelope"] = None
    tls: Annotated[Tls | None, "certificates, for `tls+tcp://` and `wss://`"] = None
    origins: Annotated[
        tuple[Origin, ...],
        Length(0, 64),
        Single(),
        "pages of other hosts that may connect, where this listens on `ws://` or `wss://`",
    ] = ()

    def check(self) -> None:
        check_limits(self.address, self.queue_bytes, self.message_bytes)
        if split_url(self.address).scheme in STREAMS:
            check_fit(self.queue_bytes or QUEUE_BYTES, self.message_bytes or MESSAGE_BYTES)
        check_tls(self.address, self.tls, listens=self.mode == "listen")
        check_origins(self.address, self.origins, listens=self.mode == "listen")
        if self.mode == "dial":
            check_dial(self.address)

    @property
    def device(self) -> str:
        return self.address

    def link(self, node: int | None = None, shed: "Shed | None" = None, **retry: Any) -> "Link":
        from bridges.media.shed_pipe import ShedLink
        from bus.transports.links import bus_link

        limits = self.queue_bytes, self.message_bytes
        retry["origins"] = self.origins
        # It may be a trunk, which only its side knows: leave room for envelopes.
        retry["age_s"] = retry.pop("held_s", 0.0)
        made = bus_link(self.address, self.mode, *limits, self.tls, trunk=True, wary=True, **retry)
        return ShedLink(made, shed)

    def label(self) -> str:
        return f"{self.mode} {self.address}"

    def wire(self, machine: str) -> str:
        return f"url {self.address}"

    @property
    def dials(self) -> str:
        return self.address if self.mode == "dial" else ""

    @property
    def listens(self) -> str:
        return self.address if self.mode == "listen" else ""

    @property
    def listens_tls(self) -> Tls | None:
        return self.tls

    def needs(self) -> Iterator[Need]:
        return (listening_needs if self.mode == "listen" else dialling_needs)(self.address, self.tls)

    def unshed(self) -> str:
        scheme = split_url(self.address).scheme
        return "" if scheme in STREAMS else f"{scheme}:// has its own queue, to which no shed policy applies"
