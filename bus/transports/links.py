"""The making of the link for a URL; transports are imported late."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from bus.errors import LinkError
from bus.hub import Hub, Link
from bus.keys import Keyring
from bus.transports.options import MESSAGE_BYTES, QUEUE_BYTES, RETRY_MAX_S, Tls
from bus.urls import split_url
from bus.wire.envelope import ENVELOPE_BYTES

Mode = Literal["listen", "dial"]
_RECORD_BYTES = 128  # around a message in a record of a durable trunk (docs/wire/durable.md)


class BusLink(Link, Protocol):
    """A link of a bus."""

    def rehome(self, hub: Hub) -> None:
        """Move to another hub with all peers, which notice nothing. Call it between two batches."""


def make_link(url: str, mode: Mode = "listen", **options: Any) -> BusLink:
    """Return the link of a bus for `url`, not yet open. Raises `LinkError` where no transport serves it."""
    try:
        scheme = split_url(url).scheme
    except ValueError as error:
        raise LinkError(f"{url}: {error}") from error
    if scheme == "inproc":
        from bus.transports.nng import NngLink

        return NngLink(url, mode, **options)
    from bus.transports.dialling import DialLink
    from bus.transports.listening import ListenLink

    return (ListenLink if mode == "listen" else DialLink)(url, **options)


def bus_link(
    url: str,
    mode: Mode,
    queue_bytes: int | None = None,
    message_bytes: int | None = None,
    tls: Tls | None = None,
    trunk: bool = False,
    make: Callable[..., BusLink] | None = None,
    origins: tuple[str, ...] = (),
    keys: Keyring | None = None,
    wary: bool = False,
    age_s: float = 0.0,
    **retry: Any,
) -> BusLink:
    """Return a link with a file's settings. Our streams bound a queue in bytes, inproc in messages.

    A `trunk` has room for an envelope beside the longest message; with `keys` both ends sign, and without
    keys a `wary` link closes peers that sign. `age_s` is that of `StreamOptions`; a link that closes peers so
    soon dials as soon again. `make(url, ...)` makes a link of streams that connects in another way.
    """
    if trunk:
        queue_bytes = (queue_bytes or QUEUE_BYTES) + ENVELOPE_BYTES + _RECORD_BYTES
        message_bytes = (message_bytes or MESSAGE_BYTES) + ENVELOPE_BYTES + _RECORD_BYTES
    if make is None and url.startswith("inproc:"):
        queue_bytes, keys, wary, age_s = None, None, False, 0.0  # it never leaves the process
    given = {"queue_bytes": queue_bytes, "message_bytes": message_bytes, "tls": tls, "keys": keys, **retry}
    options = {key: value for key, value in given.items() if value is not None}
    if origins:
        options["origins"] = origins
    if wary:
        options["wary"] = True
    if age_s:
        options |= {"age_s": age_s, "retry_max_s": min(RETRY_MAX_S, max(1.0, age_s / 2))}
    return make(url, **options) if make is not None else make_link(url, mode, **options)
