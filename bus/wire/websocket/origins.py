"""Origins: the browser pages that may open a WebSocket here.

A browser lets any page connect anywhere, and says in `Origin` where the page is from. Programs that are no
browsers send no `Origin`; they are not judged here.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from bus.urls import OwnHosts, check_host, host_in

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SHOWN_CHARACTERS = 100


def check_origin(text: str) -> None:
    """Raise ValueError if a browser cannot send this as the origin of a page."""
    parts = urlsplit(text)
    if text == "null":
        return
    if not parts.scheme or not parts.hostname or f"{parts.scheme}://{parts.netloc}" != text or "@" in text:
        raise ValueError(f'"{text}" is no origin: write one such as https://panel.example, without a path')
    check_host(parts.hostname)
    _port(text)


def _port(text: str) -> int | None:
    try:
        return urlsplit(text).port
    except ValueError:
        raise ValueError(f'"{text}" is no origin: its port is no number up to 65535') from None


def plain_origin(text: str) -> str:
    """Return an origin as browsers write it: in small letters, without the default port of its scheme."""
    origin, colon, port = text.lower().rpartition(":")
    scheme = origin.partition("://")[0]
    return origin if colon and port == str(_DEFAULT_PORTS.get(scheme)) else text.lower()


class Origins:
    """The pages that are let in: those of `allowed` origins, and those of the host that they connect to.

    `names` are the names of that host, beside IP addresses and loopback (`OwnHosts`).
    """

    def __init__(self, allowed: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        self._allowed = frozenset(map(plain_origin, allowed))
        self._own = OwnHosts(names)

    def refusal(self, origin: str | None, host: str) -> str:
        """Return why a page is not let in, from the headers of its request; "" if it is."""
        if origin is None or plain_origin(origin) in self._allowed:
            return ""
        scheme, _, netloc = origin.partition("://")
        page, here = host_in(netloc) if scheme.lower() in _DEFAULT_PORTS else "", host_in(host)
        shown = "".join(filter(str.isprintable, origin))[:_SHOWN_CHARACTERS]
        if not here or page != here:
            return f"a page of {shown} may not connect here: to allow it, add that to origins"
        if here in self._own:
            return ""
        return (
            f"{here[:_SHOWN_CHARACTERS]} is no name of this bus: to allow its pages, add {shown} to origins"
        )
