"""Notes of gateways for the tests of a plant."""

from typing import Any

from appliance.plant.asking import GatewayAnswer

ADDRESSES = {"gw-a": "10.0.0.1", "gw-b": "10.0.0.2", "gw-c": "10.0.0.3"}


def status(gateway: str = "gw-a", **more: Any) -> dict[str, Any]:
    """Return as much of a status as a note needs."""
    found: dict[str, Any] = {
        "topology": "hall", "gateway": gateway, "product": "1.0", "file": "ab" * 32, "time_ns": 10**18,
        "started_ns": 0, "page": "", "gateways": ADDRESSES, "candidates": [], "brokers": [],
        "health": {"word": "ok", "line": "ok", "more": 0, "reasons": []},
    }  # fmt: skip
    return found | more


def role(role: str = "active", lease: str = "motor") -> dict[str, Any]:
    return {"bridge": lease, "lease": lease, "role": role, "ready": True, "epoch": 1, "holder": "gw-a"}


def heard(gateway: str, ahead_ms: int = 0, **more: Any) -> GatewayAnswer:
    from appliance.plant.note import note_of

    return GatewayAnswer(gateway, note_of(status(gateway, **more)), "", ahead_ms, 4)
