"""The places at which a gateway asks the others: their status pages, as the topology has them. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from bus.transports.options import Tls
from bus.urls import is_loopback, url_host
from topologies.model import Gateway, Topology
from topologies.model.status import place_of

_ANY = ("0.0.0.0", "::", "[::]", "*")


class PagePlace(NamedTuple):
    """The page of another gateway.

    `token_file` has the word to show, None for none: each page is shown its own only. `ca_file` has whom to
    trust, and `own` the certificate to show, where the page asks for one.
    """

    gateway: str
    url: str
    token_file: str | None
    ca_file: str | None
    own: Tls | None


def places(topology: Topology, gateway: str) -> Iterator[PagePlace]:
    """Yield the pages of other gateways that can be reached from `gateway`.

    One that listens at loopback can be reached on the same machine, and one without `listen` may have another
    port.
    """
    here = topology.gateways[gateway]
    for name, other in topology.gateways.items():
        spec = other.status
        if name == gateway or not spec.serve or spec.listen is None:
            continue
        if spec.is_local and not _is_same_machine(here, other):
            continue
        tls, own = spec.tls, here.status.tls
        ca_file = (tls and tls.ca_file) or (own and own.ca_file) or None
        yield PagePlace(
            name,
            _dialled(spec.address, other.address),
            spec.token_file,
            ca_file,
            own if spec.proves else None,
        )


def _is_same_machine(one: Gateway, other: Gateway) -> bool:
    return one.address == other.address or is_loopback(other.address)


def _dialled(url: str, address: str) -> str:
    """Return the URL to ask: that of a page that listens everywhere has the gateway's address."""
    host, port = place_of(url)
    if host not in _ANY:
        return url.rstrip("/")
    return f"{url.partition(':')[0]}://{url_host(address)}:{port}"
