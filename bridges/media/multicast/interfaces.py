"""Network interfaces of this machine: found by name or by address, checked, and watched (rtnetlink(7))."""

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

from bridges.media.rtnetlink import (
    FAILED,
    GET_ADDRESS,
    GET_LINK,
    GROUPS,
    LOOPBACK,
    MULTICAST,
    RUNNING,
    TENTATIVE,
    UP,
    Address,
    AddressNews,
    DumpEnd,
    LinkNews,
    News,
    parse,
    request,
)
from bus.errors import words_of

_READ_BYTES = 65536
_ANSWER_S = 5.0


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface that is up and can multicast, with the address to send from."""

    index: int
    name: str
    mtu: int
    address: Address


def find(wanted: str, group: Address) -> Interface:
    """Find the interface with this name or address, fit for `group`. Raises OSError with the reason."""
    links = [news for news in _dump(GET_LINK) if isinstance(news, LinkNews)]
    addresses = [news for news in _dump(GET_ADDRESS) if isinstance(news, AddressNews)]
    link, named = _chosen(wanted, links, addresses)
    trouble = fault(link)
    if trouble:
        raise OSError(trouble)
    fit = [news for news in addresses if news.ifindex == link.ifindex and _is_usable(news, group)]
    if named is not None and named.version == group.version:
        fit = [news for news in fit if news.address == named]
    if not fit:
        text = f"{link.name} has no IPv{group.version} address that is ready"
        raise OSError(f"{text}: run ip addr add ADDRESS/LENGTH dev {link.name}")
    best = min(fit, key=lambda news: news.address.is_link_local != _prefers_link_local(group))
    return Interface(link.ifindex, link.name, link.mtu, best.address)


def trouble(wanted: str, group: str) -> str:
    """Return why multicast to `group` cannot use an interface now, and what to do; "" if it can."""
    try:
        find(wanted, ip_address(group))
    except OSError as error:
        return words_of(error)
    return ""


def fault(link: LinkNews) -> str:
    """Return the reason why multicast cannot use this interface now; "" if it can."""
    if link.gone:
        return f"{link.name} is gone"
    if not link.flags & UP:
        return f"{link.name} is down: run ip link set {link.name} up"
    if not link.flags & RUNNING:
        return f"{link.name} has no carrier: look at its cable and the device at the other end"
    if not link.flags & (MULTICAST | LOOPBACK):
        return f"{link.name} cannot multicast: choose another interface"
    return ""


def parse_address(text: str) -> Address | None:
    """Return `text` as an address, without its zone; None if it is a name."""
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _chosen(
    wanted: str, links: Iterable[LinkNews], addresses: Iterable[AddressNews]
) -> tuple[LinkNews, Address | None]:
    address, zone = parse_address(wanted), wanted.partition("%")[2]
    owners = {news.ifindex for news in addresses if news.address == address}
    for link in links:
        if link.name == wanted or (link.ifindex in owners and zone in ("", link.name)):
            return link, address
    raise OSError(
        f"no interface has the address {wanted}: run ip addr to see those that there are"
        if address is not None
        else f"no interface {wanted}: run ip link to see those that there are"
    )


def _is_usable(news: AddressNews, group: Address) -> bool:
    return news.address.version == group.version and not news.flags & (TENTATIVE | FAILED)


def _prefers_link_local(group: Address) -> bool:
    """Return whether a group is of local scope. Routers do not forward what a link-local address sends."""
    return group.version == 6 and group.packed[1] & 0x0F <= 2


def _dump(kind: int) -> list[News]:
    found: list[News] = []
    with _netlink() as sock:
        sock.settimeout(_ANSWER_S)
        sock.send(request(kind))
        while True:
            for news in parse(sock.recv(_READ_BYTES)):
                if not isinstance(news, DumpEnd):
                    found.append(news)
                elif news.errno:
                    raise OSError(news.errno, os.strerror(news.errno))
                else:
                    return found


def _netlink() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)


class Watch:
    """A netlink socket that reports changes of interfaces. Open it before `find`, so that it misses none."""

    def __init__(self) -> None:
        self._socket = _netlink()
        self._socket.setblocking(False)
        self._socket.bind((0, GROUPS))

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def news(self) -> list[News]:
        """Return the changes so far; never blocks. Raises OSError if some were lost: call `find` again."""
        try:
            return list(parse(self._socket.recv(_READ_BYTES)))
        except (BlockingIOError, InterruptedError):
            return []


def lost(interface: Interface, news: News) -> str:
    """Return the reason in `news` why `interface` can no longer be used; "" if there is none."""
    if isinstance(news, DumpEnd) or news.ifindex != interface.index:
        return ""
    if isinstance(news, LinkNews):
        return fault(news)
    if news.gone and news.address == interface.address:
        return f"{interface.name} has lost its address {news.address}"
    return ""
