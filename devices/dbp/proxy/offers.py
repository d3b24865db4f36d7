"""Which services a proxy offers to the other side, and which of the offered ones it takes. Pure."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from devices.dbp.nodes.listing import Address, Listed

VIA: Final = "via"
"""The field with the proxies that a service came by, the nearest to it first."""
HOPS_MAX: Final = 8
SERVICES_MAX: Final = 256
"""Services that are offered or taken at a time; of more, the first by name."""
_OWN: Final = frozenset(("interfaces", "name", "liveliness", "reg_time", VIA))


class Taken(NamedTuple):
    """A far service that is to be listed here: the names of its interfaces, and its other fields."""

    interfaces: tuple[str, ...]
    fields: Mapping[str, Any]


class Offers(NamedTuple):
    """The services that are offered, as they are said, and the addresses to which streams may lead."""

    services: dict[str, dict[str, Any]]
    addresses: dict[tuple[str, str], Address]


def offers_of(listed: Mapping[str, Listed], allowed: Iterable[str], own: str, far: str) -> Offers:
    """Return the offers of a proxy `own` to the proxy `far`, from what the near catalog lists.

    A service that has come by one of the two is not offered back: so none goes round.
    """
    allowed, services, addresses = (
        tuple(allowed),
        dict[str, dict[str, Any]](),
        dict[tuple[str, str], Address](),
    )
    for name in sorted(name for name in listed if is_allowed(name, allowed)):
        one, via = listed[name], via_of(listed[name].fields)
        if own in via or far in via or len(via) >= HOPS_MAX or len(services) >= SERVICES_MAX:
            continue
        kept = {key: value for key, value in one.fields.items() if key not in _OWN}
        services[name] = kept | {"interfaces": sorted(one.interfaces), VIA: [*via, own]}
        addresses |= {(name, key): address for key, address in one.interfaces.items()}
    return Offers(services, addresses)


def takes_of(offer: Mapping[str, Mapping[str, Any]], allowed: Iterable[str], own: str) -> dict[str, Taken]:
    """Return what a proxy `own` takes of an offer. What is malformed, or came by it before, is left out."""
    allowed, found = tuple(allowed), dict[str, Taken]()
    for name in sorted(name for name in offer if is_allowed(name, allowed)):
        fields, interfaces = offer[name], offer[name].get("interfaces")
        if not isinstance(interfaces, list) or not all(isinstance(one, str) and one for one in interfaces):
            continue
        via = via_of(fields)
        if not interfaces or own in via or len(via) > HOPS_MAX or len(found) >= SERVICES_MAX:
            continue
        kept = {key: value for key, value in fields.items() if key not in _OWN}
        found[name] = Taken(tuple(interfaces[:16]), kept | {VIA: via})
    return found


def is_allowed(name: str, allowed: Iterable[str]) -> bool:
    """Return whether an allow list names a service. `*` and `?` stand for any letters, as in a shell."""
    return name != "Error" and any(fnmatchcase(name, pattern) for pattern in allowed)


def via_of(fields: Mapping[str, Any]) -> list[str]:
    """Return the proxies that a service came by."""
    via = fields.get(VIA)
    return [one for one in via if isinstance(one, str)] if isinstance(via, list) else []
