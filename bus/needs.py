"""The needs of a link on the machine that opens it. Pure: `check --here` tests whether they are met."""

from collections.abc import Iterator
from typing import NamedTuple

from bus.transports.options import Tls
from bus.urls import HOSTED, WEB_SCHEMES, is_ip, is_wildcard, split_url
from bus.wire.pem import CERTIFICATE, KEY


class Library(NamedTuple):
    """A Python module of a package that an extra of buscoupler installs, or buscoupler itself (extra "")."""

    module: str
    package: str
    extra: str


class Device(NamedTuple):
    """A device file that this user can read and write. `advice` says what to do if it does not exist.

    `alone`: no other process may have it open.
    """

    path: str
    advice: str = "plug it in, or look for its name below /dev"
    alone: bool = False


class Listening(NamedTuple):
    """A port of TCP or UDP that is free at an address of this machine; 0 is any."""

    host: str
    port: int
    udp: bool = False


class SocketFile(NamedTuple):
    """A path at which no process listens, in a directory that exists and in which this user can write."""

    path: str


class Lookup(NamedTuple):
    """A host name that this machine can look up; `ipv4`: as an IPv4 address."""

    host: str
    ipv4: bool = False


class Readable(NamedTuple):
    """A file that this user can read."""

    path: str


class KeyFile(NamedTuple):
    """A key of trunks and brokers, in a file that this user can read and not everybody can."""

    path: str


class PageToken(NamedTuple):
    """A file that this user can read, with the token of a status page."""

    path: str


class Secret(NamedTuple):
    """A file with a key or password, which other users should not be able to read or change."""

    path: str


class Certificate(NamedTuple):
    """A certificate and the key that belongs to it, in PEM."""

    cert_file: str
    key_file: str

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """The files, each with what it holds."""
        return (self.cert_file, CERTIFICATE), (self.key_file, KEY)


class Authorities(NamedTuple):
    """A file of PEM with the certificates of authorities."""

    path: str

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """The file, with what it holds."""
        return ((self.path, CERTIFICATE),)


class Lasting(NamedTuple):
    """A file of PEM that lasts: an own certificate, or authorities that are trusted (`trusted`)."""

    path: str
    trusted: bool = False


class Directory(NamedTuple):
    """A directory that this user can write to, or make."""

    path: str


class Room(NamedTuple):
    """A directory that may grow to so many bytes. `key` names the setting that bounds it."""

    path: str
    size_bytes: int
    key: str


class Sockets(NamedTuple):
    """Sockets of a family that not every program needs, such as AF_CAN: a service needs a permission."""

    family: str


class Probe(NamedTuple):
    """Any other need: `function` ("module:function") is called with `arguments`.

    It returns what is wrong and what to do about it, "" if nothing is.
    """

    function: str
    arguments: tuple[object, ...] = ()


WEB_LIBRARY = "websockets", "websockets", ""
"""The library that every link on ws:// and wss:// needs."""

Need = (
    Library
    | Device
    | Listening
    | SocketFile
    | Lookup
    | Readable
    | KeyFile
    | PageToken
    | Secret
    | Certificate
    | Authorities
    | Lasting
    | Directory
    | Room
    | Sockets
    | Probe
)


def listening_needs(url: str, tls: Tls | None = None) -> Iterator[Need]:
    """Yield the needs of a link that listens at an address."""
    parts = split_url(url)
    if parts.scheme in HOSTED and parts.port:
        yield Listening(parts.host, parts.port)
    if parts.scheme == "ipc":
        yield SocketFile(parts.path)
    yield from _scheme_needs(parts.scheme, tls)


def dialling_needs(url: str, tls: Tls | None = None, ipv4: bool = False) -> Iterator[Need]:
    """Yield the needs of a link that dials an address."""
    parts = split_url(url)
    if parts.scheme in HOSTED:
        yield from host_needs(parts.host, ipv4)
    yield from _scheme_needs(parts.scheme, tls)


def host_needs(host: str, ipv4: bool = False) -> Iterator[Need]:
    """Yield the needs of a link that dials a host: an IP address has none."""
    if not is_ip(host) and not is_wildcard(host):
        yield Lookup(host, ipv4)


def _scheme_needs(scheme: str, tls: Tls | None) -> Iterator[Need]:
    if scheme in WEB_SCHEMES:
        yield Library(*WEB_LIBRARY)
    if tls is None:
        return
    yield from (Readable(path) for path in (tls.ca_file, tls.cert_file, tls.key_file) if path)
    yield from proof_needs(tls)


def authority_needs(ca_file: str | None) -> Iterator[Need]:
    """Yield the needs of a client that trusts the authorities of a file, if it names one."""
    if ca_file is not None:
        yield from (Readable(ca_file), Authorities(ca_file))


def proof_needs(tls: Tls) -> Iterator[Need]:
    """Yield what certificates and keys must be, beside readable: in date, of one pair, and secret."""
    if tls.ca_file:
        yield Authorities(tls.ca_file)
        yield Lasting(tls.ca_file, trusted=True)
    if tls.cert_file:
        yield Lasting(tls.cert_file)
        yield Certificate(tls.cert_file, tls.key_file or tls.cert_file)
        yield Secret(tls.key_file or tls.cert_file)
