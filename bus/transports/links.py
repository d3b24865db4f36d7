"""Makes the link for a URL, from one table; transports are imported late."""

from importlib import import_module
from typing import Any, Literal

from bus.errors import LinkError
from bus.hub import Link
from bus.transports.options import STREAMS, Tls

Mode = Literal["listen", "dial"]

_STREAM = {"listen": "bus.transports.tcp:ListenLink", "dial": "bus.transports.tcp:DialLink"}
_NNG = {"listen": "bus.transports.nng:NngLink", "dial": "bus.transports.nng:NngLink"}
SCHEMES = {
    "tcp": _STREAM,
    "ipc": _STREAM,
    "ws": _NNG,
    "wss": _NNG,
    "tls+tcp": _NNG,
    "inproc": _NNG,
}


def make_link(url: str, mode: Mode = "listen", **options: Any) -> Link:
    """Make the link of a bus for `url`, not yet open. Raises `LinkError` where no transport serves it."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in SCHEMES:
        raise LinkError(f"{url}: unknown transport: use one of {', '.join(f'{s}://' for s in SCHEMES)}")
    module, _, name = SCHEMES[scheme][mode].partition(":")
    made: Link = getattr(import_module(module), name)(url, mode=mode, **options)
    return made


def bus_link(
    url: str,
    mode: Mode,
    queue_bytes: int | None = None,
    message_bytes: int | None = None,
    tls: Tls | None = None,
    **retry: Any,
) -> Link:
    """A link with the settings of a file. Streams of our own bound a queue in bytes, NNG's in messages."""
    options: dict[str, Any] = {"message_bytes": message_bytes, "queue_bytes": queue_bytes, **retry}
    if url.partition("://")[0] not in STREAMS:
        del options["queue_bytes"]
        options["tls"] = tls and _certificates(tls)
    return make_link(url, mode, **{key: value for key, value in options.items() if value is not None})


def _certificates(tls: Tls) -> Any:
    from bus.transports import nng_socket

    return nng_socket.Tls(
        ca_file=tls.ca_file or "",
        cert_file=tls.cert_file or "",
        key_file=tls.key_file or "",
        server_name=tls.server_name or "",
        require_peer_cert=tls.require_peer_cert,
    )
