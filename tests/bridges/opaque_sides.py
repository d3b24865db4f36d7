"""Bridges with a bus and a trunk that carry any message."""

from bridges.bridge import Bridge
from bridges.policy import Policy
from bridges.side import Side

HELLO = b"hello"
OWN = 0xB


def make(**options: object) -> Bridge:
    return Bridge("b", OWN, clock=lambda: 0.0, sequence=41, **options)  # type: ignore[arg-type]


def bus_and_trunk(bridge: Bridge) -> tuple[Side, Side]:
    """Return the sides of a bus that has a trunk."""
    return bridge.side("plain", Policy(opaque=True)), bridge.side("trunk", Policy(trunk=True, opaque=True))
