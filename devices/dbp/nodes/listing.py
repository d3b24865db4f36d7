"""Reads the list of a catalog. Pure: malformed parts are left out, because a catalog may be a false one."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from devices.dbp.ports import is_port

Address = tuple[str, int]


class Listed(NamedTuple):
    """A listed service. `interfaces` has host and port of each by name, `fields` all that it registered."""

    name: str
    interfaces: Mapping[str, Address]
    function: str
    topics: tuple[str, ...]
    fields: Mapping[str, Any]

    @property
    def router(self) -> Address | None:
        """The address for requests; None if the service has no interface `router`."""
        return self.interfaces.get("router")


def read_listing(fields: Mapping[str, Any]) -> dict[str, Listed]:
    """Return the services in the fields of an info reply by name. Malformed ones are left out."""
    return {name: _listed(name, value) for name, value in fields.items() if _is_service(name, value)}


def _is_service(name: str, value: Any) -> bool:
    return name != "Error" and isinstance(value, dict) and isinstance(value.get("interfaces"), dict)


def _listed(name: str, fields: dict[str, Any]) -> Listed:
    interfaces = {key: _address(value) for key, value in fields["interfaces"].items()}
    function, topics = fields.get("function"), fields.get("topics")
    return Listed(
        name,
        {key: address for key, address in interfaces.items() if address is not None},
        function if isinstance(function, str) else "",
        tuple(topic for topic in topics if isinstance(topic, str)) if isinstance(topics, list) else (),
        fields,
    )


def _address(value: Any) -> Address | None:
    match value:
        case {"ip": str(ip), "port": port} if is_port(port):
            return ip, port
    return None
