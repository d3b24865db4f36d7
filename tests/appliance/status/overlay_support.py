"""Statuses, and rows of links in them, for tests of what shows them."""

from typing import Any

EMPTY: dict[str, Any] = {
    "gateways": [],
    "gateway": "a",
    "silent": [],
    "brokers": [],
    "hubs": [],
    "candidates": [],
    "taps": [],
    "parts": [],
    "ends": [],
    "drawing": None,
}


def row(name: str, live: int = 1, received: float | None = None, sent: float = 0) -> dict[str, Any]:
    """Return a row of a hub; with `received` it has rates."""
    rates = {} if received is None else {"rates": {"received_per_s": received, "sent_per_s": sent}}
    return {"name": name, "live": live, "dropped": {}, "rejected": {}} | rates


def hub(name: str, *rows: dict[str, Any], part: str = "") -> dict[str, Any]:
    return {"name": name, "part": part, "cuts": [], "links": list(rows)}


def end(state: str, condition: str = "", edge: str = "e", **more: Any) -> dict[str, Any]:
    """Return the row of a link that is on an edge of the picture."""
    return row("l", **more) | {"state": state, "condition": condition, "edges": [edge]}
