"""A status document as a gateway answers it, for the tests of pages."""

import json
from typing import Any

from appliance.compose import Appliance
from appliance.status.snapshot import snapshot
from bus.leases.service import LeasingBroker
from tests.helpers.appliances import appliance_of
from topologies.loading.loader import loads

TEXT = """\
name: cold-chain
gateways: {gw-a: {address: 10.0.0.11}, gw-b: {address: 10.0.0.12}}
buses: {plant: {on: gw-a, listen: tcp://127.0.0.1:0}}
"""


def appliance() -> Appliance:
    return appliance_of(loads(TEXT, "t.yaml"), "gw-a")


def status_of(one: Appliance) -> dict[str, Any]:
    """Return its snapshot as it comes over the socket."""
    found: dict[str, Any] = json.loads(json.dumps(snapshot(one.view())))
    return found


def lease(*candidates: tuple[str, bool, int], holder: str = "", epoch: int = 1) -> dict[str, Any]:
    """Return a lease of the bridge fridge. A candidate: its name, whether it holds, its silence in ms."""
    shown = [
        {
            "name": name,
            "part": f"bridge fridge@{name}",
            "order": order,
            "ready": True,
            "holding": holds,
            "silent_ms": silent_ms,
        }
        for order, (name, holds, silent_ms) in enumerate(candidates)
    ]
    return {
        "pattern": [7],
        "bridge": "fridge",
        "epoch": epoch,
        "holder": holder,
        "expires_ms": 100,
        "candidates": shown,
    }


def broker(*leases: dict[str, Any]) -> dict[str, Any]:
    """Return what a snapshot has of a broker, with these leases."""
    counts = LeasingBroker(["tcp://127.0.0.1:0"]).broker.counts
    return {
        "name": "broker main",
        "kind": "broker",
        "part": "broker main",
        "urls": ["tcp://10.0.0.11:9942"],
        "counts": counts | {"registrations": 12},
        "rejected": {},
        "leases": list(leases),
    }
