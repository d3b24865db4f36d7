"""Appliances for tests: made from a topology, and reloaded with another as the reloader does it."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from appliance.compose import Appliance
from appliance.parts.changes import Change
from topologies.loading.loader import loads
from topologies.model import Topology
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired


def appliance_of(
    topology: Topology, gateway: str, only: Collection[str] = (), sockets: Path | None = None
) -> Appliance:
    """Return what `gateway` runs of a topology, not yet open."""
    return Appliance(resolve(wired(topology), gateway), only, sockets)


@asynccontextmanager
async def running(text: str) -> AsyncIterator[Appliance]:
    """Run what gateway `gw` has in the text of a topology."""
    appliance = appliance_of(loads(text), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        yield appliance
    finally:
        appliance.close()


def reloaded(appliance: Appliance, topology: Topology) -> list[Change]:
    """Let a running appliance go over to another topology. Return what differs, then what failed."""
    return appliance.change(appliance.prepare(resolve(wired(topology), appliance.gateway)))
