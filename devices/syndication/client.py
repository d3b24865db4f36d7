"""What a client of a syndication broker is, whether it comes by TCP or is a rule of a bus. Pure."""

from collections.abc import Sequence
from typing import Protocol

from devices.syndication.wire import Difference, Publication

Told = Publication | Difference
"""A message to a client."""


class Client(Protocol):
    """One that publishes or subscribes; known by its identity. Bounds hold for each `host`, "" has none."""

    @property
    def host(self) -> str: ...

    def take(self, messages: Sequence[Told]) -> None:
        """Take what is said to it, in this order. Never blocks, never raises because of a peer.

        It may end the client: its `leave` is then delivered after what is being delivered now.
        """

    def refuse(self, why: str) -> None:
        """Note that its query was refused, and why, in words. Its last query stands."""
