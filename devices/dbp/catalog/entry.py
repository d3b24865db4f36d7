"""Judges what a registration says of a service, and makes it true. Pure."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeGuard

from devices.dbp.catalog.body import pack_object
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.wire import is_text
from devices.dbp.ports import is_port

Address = tuple[str, int]

ROUTER: Final = "router"
"""The interface over which a service is asked for a sign of life."""
LIVELINESS: Final = "liveliness"
"""The field with the interval of beats, in ms."""

LIVENESS: Final = "catalog/liveness"
"""No service, but the question how all of them live."""
_RESERVED: Final = frozenset(("Error", LIVENESS))

FAULTS: Final = {
    "name": f'a printable text that is not too long, and not "Error" or "{LIVENESS}"',
    "interfaces": "a map of at least one name to a map with an ip and a port",
    "reg_time": "a text, a number or null",
    "topics": "a list of texts, or null",
    "function": "a text that says what the service does",
    "liveliness": "the interval of heartbeats in ms, a number above 0",
    "size": "all fields together are too long",
}
"""The reasons for which `read` finds fault, with what it wants."""


class Entry(NamedTuple):
    """One service. `fields` are what clients get, without the name; `packed` is the same as JSON.

    `addresses` are those of all interfaces. `interval_s` is the agreed one of its beats; None: it announces
    none.
    """

    name: str
    fields: dict[str, Any]
    packed: bytes
    addresses: frozenset[Address]
    interval_s: float | None

    @property
    def router(self) -> Address | None:
        """Where it can be asked for a sign of life; None if it has no such interface."""
        interface = self.fields["interfaces"].get(ROUTER)
        return (interface["ip"], interface["port"]) if interface else None


def read(fields: Mapping[str, Any], host: str, strict: bool, bounds: Bounds) -> Entry | tuple[str, ...]:
    """Return the entry for a registration that came from the address `host`, or all that is wrong with it.

    An address that means the peer's own machine becomes `host`, if that is an address itself. `strict` asks
    for all that the specification wants.
    """
    faults = tuple(_faults(fields, strict, bounds))
    if faults:
        return faults
    kept = {key: value for key, value in fields.items() if key != "name"}
    kept["interfaces"] = {name: _reachable(i, host) for name, i in fields["interfaces"].items()}
    if LIVELINESS in kept:
        kept[LIVELINESS] = _agreed_ms(kept[LIVELINESS], bounds)
    packed = pack_object(kept)
    if len(packed) > bounds.entry_bytes:
        return ("size",)
    addresses = frozenset((i["ip"], i["port"]) for i in kept["interfaces"].values())
    interval_s = kept[LIVELINESS] / 1000 if LIVELINESS in kept else None
    return Entry(fields["name"], kept, packed, addresses, interval_s)


def _faults(fields: Mapping[str, Any], strict: bool, bounds: Bounds) -> Iterator[str]:
    name, topics, function = fields.get("name"), fields.get("topics"), fields.get("function")
    if not isinstance(name, str) or not is_text(name, bounds) or name in _RESERVED:
        yield "name"
    if not _are_interfaces(fields.get("interfaces")):
        yield "interfaces"
    if not isinstance(fields.get("reg_time"), str | int | float | None):
        yield "reg_time"
    if topics is not None and not _are_texts(topics):
        yield "topics"
    if strict and not (isinstance(function, str) and function):
        yield "function"
    if (strict or LIVELINESS in fields) and not is_interval(fields.get(LIVELINESS)):
        yield "liveliness"


def _are_interfaces(interfaces: Any) -> bool:
    if not isinstance(interfaces, dict) or not interfaces:
        return False
    return all(map(_is_interface, interfaces.values()))


def _is_interface(value: Any) -> bool:
    return isinstance(value, dict) and is_port(value.get("port")) and _ip(value.get("ip")) is not None


def _are_texts(texts: Any) -> bool:
    return isinstance(texts, list) and all(isinstance(text, str) for text in texts)


def is_interval(value: Any) -> TypeGuard[float]:
    """Return whether a value from JSON is an interval in ms: a number above 0, and not `true`."""
    return type(value) in (int, float) and value > 0


def _agreed_ms(offered: float, bounds: Bounds) -> float:
    return min(max(offered, 1000 * bounds.interval_min_s), 1000 * bounds.interval_max_s)


def _reachable(interface: Mapping[str, Any], host: str) -> dict[str, Any]:
    ip = _ip(interface["ip"])
    own = ip is None or ip.is_loopback or ip.is_unspecified
    return {**interface, "ip": host if own and _ip(host) else str(ip)}


def _ip(text: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a service can have. None: no address, a group, or one with a scope."""
    if not isinstance(text, str) or "%" in text:
        return None
    try:
        ip = ipaddress.ip_address("127.0.0.1" if text == "localhost" else text)
    except ValueError:
        return None
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return None if (mapped or ip).is_multicast else mapped or ip
