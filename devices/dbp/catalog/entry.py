"""The entry of a service in a catalog: checks a registration, and completes its addresses. Pure."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeGuard

from devices.dbp.catalog.body import pack_object
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.wire import is_text
from devices.dbp.ports import is_port

Address = tuple[str, int]

ROUTER: Final = "router"
"""The name of the interface over which a service gets pings."""
LIVELINESS: Final = "liveliness"
"""The field with the interval of heartbeats, in ms."""

LIVENESS: Final = "catalog/liveness"
"""The name of no service, but of the request for the liveness of all services."""
_RESERVED: Final = frozenset(("Error", LIVENESS))
_MINIMUM: Final = frozenset(("ip", "port", "heartbeat"))

FAULTS: Final = {
    "name": f'a printable text that is not too long, and not "Error" or "{LIVENESS}"',
    "interfaces": "a map of at least one name to a map with an ip and a port",
    "reg_time": "a text, a number or null",
    "topics": "a list of texts, or null",
    "function": "a text that says what the service does",
    "liveliness": "the interval of heartbeats in ms, a number above 0",
    "size": "all fields together are too long",
}
"""The faults that `read` finds, by their reasons, with what it requires."""


class Entry(NamedTuple):
    """A service as the catalog lists it. `fields` go to clients, without the name; `packed` has them as JSON.

    `addresses` has those of all interfaces. `interval_s` is the agreed interval of heartbeats; None if the
    service announces none.
    """

    name: str
    fields: dict[str, Any]
    packed: bytes
    addresses: frozenset[Address]
    interval_s: float | None

    @property
    def router(self) -> Address | None:
        """The address for pings; None if the service has no such interface."""
        interface = self.fields["interfaces"].get(ROUTER)
        return (interface["ip"], interface["port"]) if interface else None


def read(fields: Mapping[str, Any], host: str, strict: bool, bounds: Bounds) -> Entry | tuple[str, ...]:
    """Return the entry of a registration that came from the address `host`, or all of its faults.

    A loopback or wildcard address in it becomes `host`, if that is an address itself. `strict` requires all
    fields of the specification.
    """
    fields = plain(fields)
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


def plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with the interface and the liveliness of a service that says only what the text asks for.

    That is `name`, `ip`, `port`, `function` and `heartbeat`, the interval in s (docs/wire/dbp.md).
    """
    made = dict(fields)
    if "interfaces" not in fields and "ip" in fields and "port" in fields:
        made["interfaces"] = {ROUTER: {"ip": fields["ip"], "port": fields["port"]}}
        if LIVELINESS not in fields and is_interval(fields.get("heartbeat")):
            made[LIVELINESS] = 1000 * fields["heartbeat"]
    return made


def updated(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return registered fields with changes, which may be those of a service that says only the minimum."""
    if "interfaces" in changes or _MINIMUM.isdisjoint(changes) or not _is_minimal(fields):
        return {**fields, **plain(changes)}
    made = {**fields, **changes}
    del made["interfaces"]
    if "heartbeat" in changes and LIVELINESS not in changes:
        made.pop(LIVELINESS, None)
    return made


def offered(said: Mapping[str, Any], fields: Mapping[str, Any]) -> Any:
    """Return the liveliness in ms that was said; that of the entry's `fields` if none was."""
    heartbeat: Any = said.get("heartbeat")
    minimal = "interfaces" not in said and is_interval(heartbeat) and _is_minimal(fields)
    return said.get(LIVELINESS, 1000 * heartbeat if minimal else fields.get(LIVELINESS))


def _is_minimal(fields: Mapping[str, Any]) -> bool:
    """Return whether the interface of registered fields is that of their `ip` and `port`."""
    router = fields["interfaces"].get(ROUTER, {})
    return "ip" in fields and len(fields["interfaces"]) == 1 and router.get("port") == fields.get("port")


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
    """Return the IP address in a text; None for other text, a multicast group, or an address with a scope."""
    if not isinstance(text, str) or "%" in text:
        return None
    try:
        ip = ipaddress.ip_address("127.0.0.1" if text == "localhost" else text)
    except ValueError:
        return None
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return None if (mapped or ip).is_multicast else mapped or ip
