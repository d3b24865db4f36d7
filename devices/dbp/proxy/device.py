"""The settings and facts of a proxy. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Final

from bus.key_types import BrokerUrl, DialUrl, ListenUrl
from bus.needs import Need, dialling_needs, listening_needs
from bus.schema import Length, Single
from bus.transports.options import Tls
from bus.urls import split_url
from devices.device import DeviceSpec, Listener

SCHEME: Final = "tls+tcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySpec(DeviceSpec):
    """One end of a proxy, which lists services of one catalog in another one (docs/dbp.md)."""

    key: ClassVar = "proxy"
    help: ClassVar = "lists services of a catalog in another one, through one TLS connection"
    SERVICE: ClassVar = "devices.dbp.proxy.service:Proxy"

    proxy: Annotated[BrokerUrl, "the catalog of this side, `tcp://HOST:PORT`"]
    dial: Annotated[DialUrl | None, "the other end, `tls+tcp://HOST:PORT`, as a rule with port 5249"] = None
    listen: Annotated[ListenUrl | None, "or where to wait for it: one end dials, the other one listens"] = (
        None
    )
    tls: Annotated[
        Tls | None, "required: `cert_file` is this end's own certificate, `ca_file` signed the other end's"
    ] = None
    offers: Annotated[
        tuple[str, ...],
        Length(0, 256),
        Single(),
        "services of this side that the other side may use; `*` and `?` stand for any letters",
    ] = ()
    accepts: Annotated[
        tuple[str, ...], Length(0, 256), Single(), "services of the other side to list here, in the same way"
    ] = ()
    host: Annotated[
        str,
        "address on which the services of the other side are reached here; `0.0.0.0`: from other machines",
    ] = "127.0.0.1"

    def __post_init__(self) -> None:
        if (self.dial is None) is (self.listen is None):
            raise ValueError("one of dial and listen is needed: one end dials, the other one listens")
        if split_url(self.url).scheme != SCHEME:
            raise ValueError(f"{self.url}: a proxy connects over {SCHEME}://HOST:PORT only")
        if self.tls is None or not (self.tls.ca_file and self.tls.cert_file):
            raise ValueError("tls needs ca_file and cert_file: both ends prove who they are")

    @property
    def url(self) -> str:
        """The address that the proxy dials, or on which it listens."""
        return self.dial or self.listen or ""

    @property
    def joins(self) -> tuple[str, ...]:
        return ()

    def label(self, joined: Sequence[str]) -> str:
        return f"proxy of {self.proxy}, {'dials' if self.dial else 'listens on'} {self.url}"

    def listens(self) -> Iterator[Listener]:
        if self.listen is not None:
            proving = self.tls and replace(self.tls, require_peer_cert=True)  # a proxy always requires it
            yield Listener(self.listen, self.where, proving)

    def lets_in(self) -> Iterator[str]:
        yield self.host

    def needs(self) -> Iterator[Need]:
        yield from dialling_needs(self.proxy)
        if self.dial is not None:
            yield from dialling_needs(self.dial, self.tls)
        else:
            yield from listening_needs(self.url, self.tls)
