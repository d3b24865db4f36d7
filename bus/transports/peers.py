"""The peers that may join a bus at one of its addresses, and what each may send and hear there. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Annotated, NamedTuple

from bus.key_types import Patterns
from bus.schema import Check, Record
from bus.text import fits
from bus.transports.options import STREAMS, Tls
from bus.urls import TLS_SCHEMES, split_url


class Identity(NamedTuple):
    """The identity of a peer: its host, "" over ipc, and the names in its certificate, if verified."""

    host: str
    names: tuple[str, ...] = ()


def _check_name(text: str) -> None:
    if not text or len(text) > 255:
        raise ValueError("a name of a certificate has 1 to 255 characters")


def _check_network(text: str) -> None:
    ip_network(text)  # its own words say what is wrong


CertificateName = Annotated[str, Check(_check_name, "a name, with * and ? for any characters")]
Network = Annotated[str, Check(_check_network, "a network such as 10.0.0.0/24, or an address")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer(Record):
    """Peers that may join at an address. The first record of a list that fits a peer applies to it."""

    SHORT = "name"
    name: Annotated[
        CertificateName | None,
        "a name in the peer's certificate (common name or alternative name); any certificate by default",
    ] = None
    address: Annotated[Network | None, "where it connects from; anywhere by default"] = None
    send: Annotated[Patterns | None, "patterns of what it may send; all by default, nothing for `[]`"] = None
    hear: Annotated[Patterns | None, "patterns of what it may hear; all by default, nothing for `[]`"] = None

    def fits(self, who: Identity) -> bool:
        """Tell whether this record is about a peer."""
        return self._fits_name(who.names) and self._fits_address(who.host)

    def _fits_name(self, names: Sequence[str]) -> bool:
        wanted = self.name
        return wanted is None or any(fits(name.lower(), wanted.lower()) for name in names)

    def _fits_address(self, host: str) -> bool:
        if self.address is None or not host:
            return self.address is None
        address = ip_address(host.partition("%")[0])
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return (mapped or address) in ip_network(self.address)


def check_peers(url: str, tls: Tls | None, peers: Sequence[Peer]) -> None:
    """Raise ValueError for records of peers that could never be judged at an address."""
    scheme = split_url(url).scheme
    if peers and scheme not in STREAMS:
        raise ValueError(f"peers has no effect here: {scheme}:// is for programs of one process")
    if any(peer.name is not None for peer in peers) and not (
        scheme in TLS_SCHEMES and tls and tls.require_peer_cert
    ):
        raise ValueError("peers by name need certificates: TLS with require_peer_cert: true")
    if scheme == "ipc" and any(peer.address is not None for peer in peers):
        raise ValueError("peers by address have no effect here: a peer on ipc:// has no address")
