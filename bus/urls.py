"""Addresses as written in topology files: splitting and checking, without I/O."""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

HOSTED = ("tcp", "tls+tcp", "ws", "wss")
SCHEMES = (*HOSTED, "ipc", "inproc")
BEACON = "beacon"  # no place, but the name of a bus that says itself where it is
TLS_SCHEMES = ("tls+tcp", "wss")
WEB_SCHEMES = ("ws", "wss")
URL_CHARACTERS_MAX = 1024
IPC_PATH_BYTES_MAX = 107  # sun_path of Linux, without its closing zero
HOST_CHARACTERS_MAX = 253
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")


class Url(NamedTuple):
    """The parts of an address: `host` and `port` of tcp, tls+tcp, ws, wss; `path` of ipc, inproc, ws, wss."""

    scheme: str
    host: str
    port: int
    path: str


@lru_cache(maxsize=4096)  # the checks of a large topology need each address many times
@lru_cache(maxsize=16_384)  # a search in a topology compares each address with all others
def split_url(text: str) -> Url:
    """Return the parts of an address. Raises ValueError, with the reason, if it is not valid."""
    scheme, colon, rest = text.partition("://")
    if len(text) > URL_CHARACTERS_MAX or not text.isprintable() or " " in text:
        raise ValueError("an address is at most 1024 printable characters without spaces")
    if scheme.startswith("dial+"):
        raise ValueError(f"write {scheme.removeprefix('dial+')}://... under dial:, without dial+")
    if not colon or scheme not in (*SCHEMES, BEACON):
        raise ValueError(f"an address must start with {', '.join(s + '://' for s in SCHEMES)}")
    return _hosted(text, scheme) if scheme in HOSTED else _local(scheme, rest)


def _local(scheme: str, path: str) -> Url:
    if not path:
        raise ValueError(f"{scheme}:// needs a {'path' if scheme == 'ipc' else 'name'}")
    if scheme == "ipc" and len(path.encode("utf-8", "replace")) > IPC_PATH_BYTES_MAX:
        raise ValueError(f"the path of a Unix socket is at most {IPC_PATH_BYTES_MAX} bytes")
    return Url(scheme, "", 0, path)


def _hosted(text: str, scheme: str) -> Url:
    parts = urlsplit(text)
    port = _port(parts, scheme)
    if not parts.hostname:
        raise ValueError("the address has no host; 0.0.0.0 stands for all interfaces")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"write {scheme}://HOST:PORT, without user, query and fragment")
    if parts.path not in ("", "/") and not scheme.startswith("ws"):
        raise ValueError(f"{scheme}:// does not take a path")
    host = parts.hostname
    if host != "*":
        check_host(host)
    return Url(scheme, plain_host(host), port, parts.path)


def port_in(parts: SplitResult) -> int | None:
    """Return the port of an address; None if it has none. Raises ValueError if it is no port."""
    try:
        return parts.port
    except ValueError:
        if "::" in parts.netloc:
            raise ValueError("write an IPv6 address in brackets, as in [::1]:5555") from None
        word = parts.netloc.rpartition(":")[2]
        raise ValueError(f'"{word[:64]}" is no port: write a number up to 65535') from None


def _port(parts: SplitResult, scheme: str) -> int:
    port = port_in(parts)
    if port is None:
        raise ValueError(f"the address has no port: write {scheme}://HOST:PORT")
    return port


def check_host(host: str) -> None:
    """Raise ValueError if `host` is neither an IP address nor a host name."""
    if _ip(host) is not None:
        return
    labels = _ascii(host).removesuffix(".").split(".")
    if labels[-1].isdecimal():
        raise ValueError(f'"{host[:64]}" is no host: it ends with a number, and is no IPv4 address')
    fits = len(host) <= HOST_CHARACTERS_MAX and host.isprintable()  # as in an address
    if not fits or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError(f'"{host[:64]}" is no host: write an IP address or a host name, no port')


def check_peer(host: str) -> None:
    """Raise ValueError if other machines cannot reach a machine at `host`."""
    check_host(host)
    if is_wildcard(host):
        raise ValueError(f'"{host}" stands for all interfaces: write an address that others can dial')


def _ascii(host: str) -> str:
    """Return a host name in the form in which the system looks it up; unchanged if it has none."""
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return host


@lru_cache(maxsize=16_384)
def _ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def is_ip(host: str) -> bool:
    """Return whether a host is an IP address."""
    return _ip(host) is not None


_NETLOC = re.compile(
    r"(\[(?P<address>[0-9a-fA-F:.]+(%[0-9a-zA-Z._~-]+)?)\]|(?P<name>[\w.-]+))(:\d*)?", re.ASCII
)


def host_in(netloc: str) -> str:
    """Return the host of HOST:PORT in small letters; "" for anything else, such as USER@HOST or a list."""
    found = _NETLOC.fullmatch(netloc)
    return "" if found is None else plain_host((found["address"] or found["name"]).lower())


def plain_host(host: str) -> str:
    """Return an IP address in its usual form; a name unchanged."""
    return str(_ip(host) or host)


def url_host(host: str) -> str:
    """Return a host as it stands in a URL: an IPv6 address in brackets. Source: RFC 3986, section 3.2.2."""
    return f"[{host}]" if ":" in host else host


def check_listen(text: str) -> None:
    """Raise ValueError if nothing can listen on an address. Port 0 lets the system choose the port."""
    if split_url(text).scheme == BEACON:
        raise ValueError("this can be dialled only: to announce an address, write beacon: true beside it")


def check_dial(text: str) -> None:
    """Raise ValueError if nothing can dial an address."""
    url = split_url(text)
    if url.scheme in HOSTED and (url.port == 0 or is_wildcard(url.host)):
        raise ValueError("this can be listened on, not dialled: name a host and a port")


def check_broker(text: str) -> None:
    """Raise ValueError if no TMQ broker can listen at an address: TMQ knows only IPv4 addresses and names."""
    url = split_url(text)
    if url.scheme != "tcp" or ":" in url.host:
        raise ValueError("a broker listens on tcp://HOST:PORT, where HOST is an IPv4 address or a name")
    if url.port == 0:
        raise ValueError("a broker needs a port that others can dial, not 0")


def check_listening_broker(text: str) -> None:
    """Raise ValueError if no TMQ broker of ours can listen at an address: it knows TLS, too."""
    check_broker(text.removeprefix("tls+") if text.startswith("tls+tcp://") else text)


def check_dialled_broker(text: str) -> None:
    """Raise ValueError if no client can dial a TMQ broker at an address."""
    check_broker(text)
    check_dial(text)


def is_wildcard(host: str) -> bool:
    """Return whether a host stands for all interfaces of a machine."""
    address = _ip(host)
    return host == "*" or (address is not None and address.is_unspecified)


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached only from its own machine."""
    address = _ip(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback


class OwnHosts:
    """The hosts that are surely this machine: IP addresses, names of loopback, and its own `names`.

    A hostile page can have a name of its own that leads to our address (DNS rebinding), so names of requests
    are checked. An IP address cannot be anybody else's name.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(plain_host(name.lower()) for name in names)

    def __contains__(self, host: str) -> bool:
        return is_ip(host) or is_loopback(host) or host in self._names


def are_loopback(hosts: Iterable[str]) -> bool:
    """Return whether there are hosts, and all of them can be reached only from their own machine."""
    known = list(hosts)
    return bool(known) and all(map(is_loopback, known))


def overlap(one: str, other: str) -> bool:
    """Return whether two listeners on these hosts of one machine conflict if they use the same port."""
    names = {"127.0.0.1" if host == "localhost" else host for host in (one, other)}
    if len(names) == 1 or names & {"::", "*"}:
        return True  # on Linux, a wildcard of IPv6 includes IPv4
    return "0.0.0.0" in names and not any(":" in host for host in names)


def check_ends(dials: Iterable[str], listens: Iterable[str]) -> None:
    """Raise ValueError for two connections between one pair: to itself, or twice to the same address.

    Each message would go round, or come twice. Names other than `localhost` are not looked up.
    """
    own, known = [split_url(url) for url in listens], set[Url]()
    for text in dials:
        url = split_url(text)
        if any(_hears(one, url) for one in own):
            raise ValueError(f"{text}: the socket listens here and would hear itself: dial another address")
        if url in known:
            raise ValueError(f"{text}: dialled twice, so each message would come twice")
        known.add(url)


def _hears(one: Url, dialled: Url) -> bool:
    """Return whether what listens at `one` is surely reached by `dialled`."""
    if one._replace(host="") != dialled._replace(host=""):
        return False
    is_here = is_loopback(dialled.host) or dialled.host == one.host
    return one.scheme not in HOSTED or (one.port > 0 and is_here and overlap(one.host, dialled.host))


def with_host(url: Url, host: str) -> str:
    """Return an address as text, with another host."""
    return f"{url.scheme}://{url_host(host)}:{url.port}{url.path}"
