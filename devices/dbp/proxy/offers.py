"""The choice of the services that a proxy offers to the other side, and of those that it takes. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from bus.text import fits
from devices.dbp.nodes.listing import Address, Listed

VIA: Final = "via"
"""The field with the ids of the proxies that a service came by, the one nearest to it first."""
HOPS_MAX: Final = 8
SERVICES_MAX: Final = 256
"""The most services that are offered or taken: those that already are, then the first ones by name."""
_BESIDE: Final = 2
"""The descriptors of a service beside its ports: its connection to the catalog, and its heartbeats."""
_OWN: Final = frozenset(("interfaces", "name", "liveliness", "reg_time", VIA))


class Taken(NamedTuple):
    """A service of the far side to list on this one: the names of its interfaces, and its other fields."""

    interfaces: tuple[str, ...]
    fields: Mapping[str, Any]


class Offers(NamedTuple):
    """The offered services by name, as they are sent, and the addresses by service and interface.

    Streams of the other side may lead to these addresses only.
    """

    services: dict[str, dict[str, Any]]
    addresses: dict[tuple[str, str], Address]


def offers_of(
    listed: Mapping[str, Listed], allowed: Iterable[str], own: str, far: str, before: Collection[str] = ()
) -> Offers:
    """Return the offers of the proxy `own` to the proxy `far`, from the services in the near catalog.

    A service that came by one of the two is not offered back, so that none goes round. Those offered `before`
    come first: who lists many new ones pushes none out.
    """
    allowed = tuple(allowed)
    services, addresses = dict[str, dict[str, Any]](), dict[tuple[str, str], Address]()
    for name in _in_turn(listed, allowed, before):
        one, via = listed[name], via_of(listed[name].fields)
        if own in via or far in via or len(via) >= HOPS_MAX or len(services) >= SERVICES_MAX:
            continue
        kept = {key: value for key, value in one.fields.items() if key not in _OWN}
        services[name] = kept | {"interfaces": sorted(one.interfaces), VIA: [*via, own]}
        addresses |= {(name, key): address for key, address in one.interfaces.items()}
    return Offers(services, addresses)


def takes_of(
    offer: Mapping[str, Mapping[str, Any]], allowed: Iterable[str], own: str, before: Collection[str] = ()
) -> dict[str, Taken]:
    """Return the services of an offer that the proxy `own` takes; those taken `before` come first.

    Malformed services, and services that came by `own` before, are left out.
    """
    allowed, found = tuple(allowed), dict[str, Taken]()
    for name in _in_turn(offer, allowed, before):
        fields, interfaces = offer[name], offer[name].get("interfaces")
        if not isinstance(interfaces, list) or not all(isinstance(one, str) and one for one in interfaces):
            continue
        via = via_of(fields)
        if not interfaces or own in via or len(via) > HOPS_MAX or len(found) >= SERVICES_MAX:
            continue
        kept = {key: value for key, value in fields.items() if key not in _OWN}
        found[name] = Taken(tuple(interfaces[:16]), kept | {VIA: via})
    return found


def _in_turn(names: Iterable[str], allowed: Iterable[str], before: Collection[str]) -> list[str]:
    """Return the names that are allowed: those of `before`, then the others."""
    return sorted(
        (name for name in names if is_allowed(name, allowed)), key=lambda one: (one not in before, one)
    )


def fitting(taken: Mapping[str, Taken], descriptors: int) -> dict[str, Taken]:
    """Return the services, in their order, for whose ports there are so many descriptors."""
    return dict(_fitting(taken, descriptors))


def _fitting(taken: Mapping[str, Taken], left: int) -> Iterator[tuple[str, Taken]]:
    for name, one in taken.items():
        if (need := len(one.interfaces) + _BESIDE) <= left:
            left -= need
            yield name, one


def is_allowed(name: str, allowed: Iterable[str]) -> bool:
    """Return whether an allow list has a service. `*` and `?` are wildcards, as in a shell."""
    return name != "Error" and any(fits(name, pattern) for pattern in allowed)


def via_of(fields: Mapping[str, Any]) -> list[str]:
    """Return the ids of the proxies that a service came by."""
    via = fields.get(VIA)
    return [one for one in via if isinstance(one, str)] if isinstance(via, list) else []
