"""Alarms as a topology resolves them, and the books of gateways."""

from typing import Any

from appliance.alarms.book import Book
from topologies.model.alarms import AlarmSpec
from topologies.resolved.alarms import ResolvedAlarm

FRIDGE = (7, 1)


def spec(**settings: Any) -> AlarmSpec:
    """Return the record of an alarm of bus `hall`, or of a link."""
    return AlarmSpec(bus=() if "link" in settings else ("hall",), **settings)


def alarm(judges: tuple[str, ...] = ("a", "b"), **settings: Any) -> ResolvedAlarm:
    """Return an alarm of pattern 7, `warm`, that some gateways judge."""
    return ResolvedAlarm("warm", spec(**settings), (7,), ("hall",), judges)


def book(gateway: str = "a", **settings: Any) -> Book:
    """Return the book of an alarm at a gateway, at time 0; by default of values above 8."""
    return Book(alarm(**(settings or {"above": 8})), gateway, lambda key: "/".join(map(str, key)), 0)
