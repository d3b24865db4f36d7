"""The emptying of the journal of a dead gateway: what is left goes to an end, as the gateway would send it.

Nothing is taken from there: what the end keeps for the dead gateway stays with it.
"""

from asyncio import AbstractEventLoop
from collections.abc import Sequence
from typing import Final

from bridges.durable.door import Door
from bridges.durable.end import End
from bridges.durable.house import House
from bridges.durable.settings import Durable
from bridges.durable.wire import EndName
from bus.hub import Hub
from bus.transports.links import BusLink

BYTES: Final = 1 << 40
_AGE_H: Final = 8760.0


class Emptying:
    """The journal in `directory`, made for `name`, which keeps for `ends`, and the link to one of these."""

    def __init__(self, directory: str, name: EndName, ends: Sequence[str], link: BusLink) -> None:
        self._name, self._ends, self._link = name, ends, link
        self._house = House(name, Durable(directory=directory, bytes=BYTES, age_h=_AGE_H, catch_up=1.0), ends)
        self._door: Door | None = None

    def open(self, loop: AbstractEventLoop) -> None:
        """Open the journal and the link. Raises `LinkError`."""
        self._house.open(loop)
        self._door = Door(Hub(self._name.bus), self._name, loop, self._house, self._ends, takes=False)
        self._link.open(self._door, loop)

    def close(self) -> None:
        """Close both, and return when all that was acknowledged is noted."""
        self._link.close()
        self._house.close(wait=True)

    @property
    def end(self) -> End | None:
        """The end that is connected, and for which something may be kept."""
        return next((end for end in self._house.ends if end.line is not None), None)

    @property
    def is_done(self) -> bool:
        """Whether the end that is connected has all."""
        sender = None if self.end is None else self.end.sender
        return sender is not None and sender.is_up and sender.has_all

    @property
    def trouble(self) -> str:
        """The reason why nothing can be sent; "" if there is none, or nobody is there."""
        if self._house.fault:
            return self._house.fault
        strangers = (
            []
            if self._door is None
            else [one.gateway for one in self._door.far if one.gateway not in self._ends]
        )
        if strangers:
            return f"gateway {strangers[0]} is there, and the journal keeps for {', '.join(self._ends)}"
        if self._door is not None and self._door.has_plain:
            return "nobody there acknowledges anything: it is no durable trunk, or an older appliance"
        return self._link.fault
