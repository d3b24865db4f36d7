"""Names of serial ports: device paths, hwgrep://, socket:// and rfc2217://. No port is opened here."""

import re
from urllib.parse import urlsplit

from bus.urls import check_host, port_in

SERVERS = ("socket", "rfc2217")
_SCHEMES = ("", *SERVERS, "hwgrep")


def scheme_of(port: str) -> str:
    """Return the scheme of a port's address; "" for a device path."""
    return urlsplit(port).scheme if "://" in port else ""


def check_port(port: str) -> None:
    """Raise ValueError for a port that can never be opened."""
    scheme = scheme_of(port)
    if scheme not in _SCHEMES:
        raise ValueError(f"{scheme}:// has no descriptor to wait on: use a device path or {_SCHEMES[1:]}")
    if scheme in SERVERS:
        server_of(port)
    if scheme == "hwgrep":
        _check_expression(port)


def _check_expression(port: str) -> None:
    try:
        re.compile(port.removeprefix("hwgrep://").split("&")[0])
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error


def server_of(url: str) -> tuple[str, int]:
    """Return the host and port of a serial server. Raises ValueError if the address has none."""
    parts = urlsplit(url)
    host, port = parts.hostname, port_in(parts)
    if not host or not port or parts.query or parts.path.strip("/"):
        raise ValueError(f"write it as {parts.scheme}://host:port")
    check_host(host)
    return host, port
