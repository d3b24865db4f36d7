"""Choice of the gateway that a machine is, if nobody names it. Pure."""

from bus.errors import TopologyError
from topologies.model import Topology


def gateway_named(topology: Topology, host: str) -> str | None:
    """Return the gateway with the name of a host, in full or without its domain; None if there is none."""
    names = (host, host.partition(".")[0])
    return next((name for name in names if name in topology.gateways), None)


def gateway_here(topology: Topology, host: str) -> str:
    """Return the gateway named like `host`, or the only one. Raises `TopologyError`, with all names."""
    found = gateway_named(topology, host)
    if found is None and len(topology.gateways) > 1:
        names = ", ".join(topology.gateways)
        text = f"the topology has several gateways, and none is named like this host, {host}"
        raise TopologyError(f"{text}: choose one with --gateway: {names}")
    return found or next(iter(topology.gateways))
