"""The record of a gateway's status page: where it listens, and who may read it. Pure."""

import re
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from bus.key_types import Host, Path
from bus.schema import Check, Length, Record, Single
from bus.transports.options import Tls
from bus.urls import check_host, is_loopback, split_url

HTTP, HTTPS = "http", "https"
DEFAULT = "http://127.0.0.1:9943"
_PORT = re.compile(r":[^]:]+$")


def check_page(text: str) -> None:
    """Raise ValueError unless a status page can listen at a text."""
    parts = urlsplit(text)
    if parts.scheme not in (HTTP, HTTPS) or f"{parts.scheme}://{parts.netloc}" != text.rstrip("/"):
        raise ValueError(f'"{text}" is no address of a page: write one such as {DEFAULT}')
    if not _PORT.search(parts.netloc):
        raise ValueError(f'"{text}" has no port: write one such as {DEFAULT}')
    check_host(place_of(text)[0])


def place_of(url: str) -> tuple[str, int]:
    """Return the host and the port of an address of a page. Raises ValueError for one without."""
    parts = split_url(tcp_url(url))
    return parts.host, parts.port


def tcp_url(url: str) -> str:
    """Return the address of a page as that of a bus, which has the same form. Raises ValueError."""
    return "tcp" + url.rstrip("/")[url.index(":") :]


PageUrl = Annotated[str, Check(check_page, "an address such as http://127.0.0.1:9943")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSpec(Record):
    """The status page of a gateway, with its metrics (docs/status.md)."""

    SHORT = "listen"
    listen: Annotated[
        PageUrl | None,
        "`http://HOST:PORT`, or `https://` with `tls`; by default "
        f"`{DEFAULT}`, or if that port is taken, a free one",
    ] = None
    serve: Annotated[bool, "whether there is a page at all"] = True
    token_file: Annotated[
        Path | None, "a file with a word of 16 to 256 characters that readers must show; nobody by default"
    ] = None
    ack_file: Annotated[
        Path | None,
        "a file with a line `NAME TOKEN` for each person who may acknowledge alarms there; nobody by default",
    ] = None
    tls: Annotated[Tls | None, "certificates, for `https://`"] = None
    open: Annotated[bool, "everybody may read it who reaches an address beyond loopback"] = False
    hosts: Annotated[
        tuple[Host, ...],
        Length(0, 64),
        Single(),
        "names by which browsers and scrapers may call it, beside addresses, localhost, the name of the "
        "machine and `address` of the gateway",
    ] = ()

    def __post_init__(self) -> None:
        secure = self.address.startswith(f"{HTTPS}:")
        if secure and not (self.tls and self.tls.cert_file):
            raise ValueError("https:// needs tls: {cert_file: ...}")
        if self.tls and not secure:
            raise ValueError("tls is for https:// only")
        if not (self.is_local or self.open or self.token_file or self.proves):
            raise ValueError(
                f"{self.address} can be reached by other machines: give it a token_file, or tls with "
                "require_peer_cert, or write open: true beside it"
            )

    @property
    def address(self) -> str:
        """The URL where the page listens, if that port is free."""
        return self.listen or DEFAULT

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(place_of(self.address)[0])

    @property
    def proves(self) -> bool:
        """Whether readers must show a certificate."""
        return self.tls is not None and self.tls.require_peer_cert


PLAIN = StatusSpec()
"""The page of a gateway for which the file says nothing."""
