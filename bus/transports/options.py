"""The default limits of a bus's addresses, and their certificates, as a file gives them."""

from dataclasses import dataclass
from typing import Annotated

from bus.key_types import Host, Path
from bus.schema import Owned, Record
from bus.urls import TLS_SCHEMES, WEB_SCHEMES, split_url

MESSAGE_BYTES = 1 << 20
"""The length of the longest message, by default."""
QUEUE_BYTES = 8 << 20
"""The bound of the queue to each peer, by default."""
RETRY_MAX_S = 10.0
"""The longest pause before dialling again, by default."""
STREAMS = ("tcp", "ipc", *TLS_SCHEMES, "ws")
"""The schemes of our own streams, whose queue is bounded in bytes; NNG bounds that of inproc in messages."""


@dataclass(frozen=True, slots=True)
class Tls(Record):
    """Certificates for `tls+tcp://` and `wss://`: files in PEM."""

    ca_file: Annotated[Path | None, "authorities to trust; the system's by default"] = None
    cert_file: Annotated[Path | None, "own certificate; who listens needs one"] = None
    key_file: Annotated[Path | None, "own key, if `cert_file` does not hold it too"] = None
    server_name: Annotated[Host | None, "the name expected; the address's host by default"] = None
    require_peer_cert: Annotated[bool, "turn away peers that `ca_file` did not sign"] = False


def check_tls(url: str, tls: Tls | None, listens: bool) -> None:
    """Raise ValueError for a listener without a certificate, and for settings that nothing would look at."""
    if split_url(url).scheme not in TLS_SCHEMES:
        if tls:
            raise ValueError(f"tls is for {' and '.join(s + '://' for s in TLS_SCHEMES)} only")
        return
    if listens and not (tls and tls.cert_file):
        raise ValueError("listening with TLS needs tls: {cert_file: ...}")
    if tls and tls.key_file and not tls.cert_file:
        raise ValueError("key_file has no effect without cert_file")


def check_tls_of_all(url: str, tls: Owned[Tls] | None, listens: bool) -> None:
    """Raise ValueError as `check_tls` does, for what is said of all gateways that use an address.

    Who listens is checked by `check_own_tls`, where each gateway has its own.
    """
    every = None if tls is None else tls.every
    if tls is None or every is not None:
        check_tls(url, every, listens)
    for one in () if tls is None else tls.own.values():
        check_tls(url, one, listens=False)


def check_own_tls(url: str, tls: Owned[Tls] | None, gateway: str) -> None:
    """Raise ValueError if a gateway that listens at an address has no certificate among those by gateway."""
    if tls is None or not tls.own:
        return
    own = tls.of(gateway)
    if own is None:
        raise ValueError(f"tls has no value for {gateway}, which listens at {url}")
    try:
        check_tls(url, own, listens=True)
    except ValueError as error:
        raise ValueError(f"{error} for {gateway}") from None


def check_keys(url: str, trunk: bool, keys: tuple[str, ...] | None) -> None:
    """Raise ValueError for keys where nothing is signed."""
    if keys is not None and not trunk:
        raise ValueError("keys have no effect here: only a trunk is signed, so write trunk: true beside them")
    if keys and split_url(url).scheme == "inproc":
        raise ValueError("keys have no effect here: inproc:// never leaves its process")


def check_age(url: str, trunk: bool, age_ms: int | None) -> None:
    """Raise ValueError for an age where nothing reads it."""
    if age_ms is not None and not trunk:
        raise ValueError("age_ms has no effect here: it is for trunks, so write trunk: true beside it")
    if age_ms is not None and split_url(url).scheme == "inproc":
        raise ValueError("age_ms has no effect here: inproc:// never leaves its process")


def check_origins(url: str, origins: tuple[str, ...], listens: bool = True) -> None:
    """Raise ValueError for origins where no browser can connect."""
    if origins and not (listens and split_url(url).scheme in WEB_SCHEMES):
        raise ValueError("origins are for listening on ws:// and wss:// only: browsers connect nowhere else")


def check_limits(url: str, queue_bytes: int | None, message_bytes: int | None) -> None:
    """Raise ValueError for a limit that the transport of an address does not have."""
    if split_url(url).scheme != "inproc":
        return
    if queue_bytes is not None:
        raise ValueError("queue_bytes has no effect here: inproc:// bounds its queues in messages")
    if message_bytes is not None:
        raise ValueError("message_bytes has no effect here: inproc:// takes messages of any length")


def check_last_values(url: str, trunk: bool, last_values: bool) -> None:
    """Raise ValueError where last values cannot be given to one peer only, or would be new messages."""
    if last_values and trunk:
        raise ValueError("last_values on a trunk: another bus would say all of them again as new")
    if last_values and split_url(url).scheme not in STREAMS:
        raise ValueError("last_values has no effect here: inproc:// cannot give it to the new peer alone")


def check_fit(queue_bytes: int, message_bytes: int) -> None:
    """Raise ValueError for a queue that is shorter than the longest message."""
    if queue_bytes < message_bytes:
        raise ValueError("queue_bytes must be at least message_bytes: else the longest message never fits")


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The limits of each peer of a stream link."""

    queue_bytes: int = QUEUE_BYTES  # waiting for one slow peer; more is dropped and counted
    message_bytes: int = MESSAGE_BYTES  # a peer that announces more is closed
    handshake_s: float = 5.0
    peers: int = 16384
    retry_min_s: float = 0.1
    retry_max_s: float = RETRY_MAX_S
    silence_s: float = 0.0  # a peer that acknowledges nothing for so long is closed; 0: as the system does
    age_s: float = 0.0  # what waits for longer is dropped, and its peer closed if it takes nothing; 0: never

    def __post_init__(self) -> None:
        check_fit(self.queue_bytes, self.message_bytes)
