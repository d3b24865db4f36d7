"""The saying of announcements by the parts of a gateway."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from appliance.parts.build import Part

if TYPE_CHECKING:
    from bus.tmq.wire import Address


def say(parts: Iterable[Part], frame: bytes) -> None:
    """Send an announcement by all trunks, and once to each broker."""
    told: set[Address] = set()
    for part in parts:
        part.announce(frame, told)
