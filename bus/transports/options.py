"""Certificates of a bus's addresses, as a file gives them."""

from dataclasses import dataclass, field

from bus.schema import Host, Node, Path, doc
from bus.transports.urls import TLS_SCHEMES, split_url

STREAMS = ("tcp", "ipc")  # on our own streams, whose queue is bounded in bytes; NNG's is in messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls(Node):
    """Certificates for `tls+tcp://` and `wss://`: files in PEM."""

    ca_file: Path | None = field(default=None, metadata=doc("authorities to trust; the system's by default"))
    cert_file: Path | None = field(default=None, metadata=doc("own certificate; who listens needs one"))
    key_file: Path | None = field(default=None, metadata=doc("own key, if `cert_file` does not hold it too"))
    server_name: Host | None = field(
        default=None, metadata=doc("the name expected; the address's host by default")
    )
    require_peer_cert: bool = field(
        default=False, metadata=doc("turn away peers that `ca_file` did not sign")
    )


def check_tls(url: str, tls: Tls | None) -> None:
    """Raise ValueError for certificates where nothing would look at them."""
    if tls and split_url(url).scheme not in TLS_SCHEMES:
        raise ValueError(f"tls is for {' and '.join(s + '://' for s in TLS_SCHEMES)} only")


def needs_certificate(url: str, tls: Tls | None) -> bool:
    """Whether a listener on `url` would have nothing to show."""
    return split_url(url).scheme in TLS_SCHEMES and not (tls and tls.cert_file)
