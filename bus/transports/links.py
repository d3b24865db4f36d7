"""Makes the link for a URL, from one table; transports are imported late."""

from importlib import import_module
from typing import Any, Literal

from bus.errors import LinkError
from bus.hub import Link

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
