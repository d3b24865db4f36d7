"""Certificates of a bus's addresses, as a file gives them."""

from dataclasses import dataclass
from typing import Annotated

from bus.schema import Host, Node, Path
from bus.urls import TLS_SCHEMES, split_url

STREAMS = ("tcp", "ipc")  # on our own streams, whose queue is bounded in bytes; NNG's is in messages


@dataclass(frozen=True, slots=True)
class Tls(Node):
    """Certificates for `tls+tcp://` and `wss://`: files in PEM."""

    ca_file: Annotated[Path | None, "authorities to trust; the system's by default"] = None
    cert_file: Annotated[Path | None, "own certificate; who listens needs one"] = None
    key_file: Annotated[Path | None, "own key, if `cert_file` does not hold it too"] = None
    server_name: Annotated[Host | None, "the name expected; the address's host by default"] = None
    require_peer_cert: Annotated[bool, "turn away peers that `ca_file` did not sign"] = False


def check_tls(url: str, tls: Tls | None) -> None:
    """Raise ValueError for certificates where nothing would look at them."""
    if tls and split_url(url).scheme not in TLS_SCHEMES:
        raise ValueError(f"tls is for {' and '.join(s + '://' for s in TLS_SCHEMES)} only")


def needs_certificate(url: str, tls: Tls | None) -> bool:
    """Return whether a listener on `url` would have nothing to show."""
    return split_url(url).scheme in TLS_SCHEMES and not (tls and tls.cert_file)
