"""The making of outlets from their records."""

from typing import TYPE_CHECKING, Any, Final

from bus.errors import LinkError
from bus.kinds import Kinds
from topologies.model.alarms import OutletSpec

if TYPE_CHECKING:
    from appliance.alarms.outlets.outlet import Done, Outlet

DELIVERIES: "Final[Kinds[Any]]" = Kinds(
    "buscoupler.deliveries",
    {
        "webhook": "appliance.alarms.outlets.webhook:delivery",
        "command": "appliance.alarms.outlets.command:delivery",
        "mail": "appliance.alarms.outlets.mail:delivery",
    },
)
"""The functions that return the delivery of an outlet, by the key of its record."""


def outlet_of(name: str, spec: OutletSpec, done: "Done") -> "Outlet":
    """Return the outlet of a record, not yet open. Its module is loaded now: most gateways have none.

    Raises `LinkError` for a kind whose delivery is not installed.
    """
    delivery: Any = DELIVERIES.find(spec.key)
    if delivery is None:
        raise LinkError(f"outlet {name}: nothing delivers to a {spec.key}")
    from appliance.alarms.outlets.outlet import ThreadOutlet

    return ThreadOutlet(name, spec.url, delivery(spec), done)
