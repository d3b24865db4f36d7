"""Appliances for tests: made from a topology, and reloaded with another as the reloader does it."""

from collections.abc import Collection
from pathlib import Path

from appliance.compose import Appliance
from appliance.parts.changes import Change
from topologies.model import Topology
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired


def appliance_of(
    topology: Topology, gateway: str, only: Collection[str] = (), sockets: Path | None = None
) -> Appliance:
    """Return what `gateway` runs of a topology, not yet open."""
    return Appliance(resolve(wired(topology), gateway), only, sockets)


def reloaded(appliance: Appliance, topology: Topology) -> list[Change]:
    """Let a running appliance go over to another topology. Return what differs, then what failed."""
    return appliance.change(appliance.prepare(resolve(wired(topology), appliance.gateway)))
