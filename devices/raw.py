"""The raw device: a hub with SP links only, which joins partial buses into one bus."""

from asyncio import AbstractEventLoop
from collections.abc import Iterable

from bus.errors import LinkError
from bus.hub import Hub, Link
from bus.transports.links import bus_link
from bus.urls import check_ends
from bus.watch.watched import WatchedHub


class RawDevice:
    """A raw device: it forwards each message to every peer but its sender, on all of its links.

    Raises `LinkError` for an address that cannot work, for its own, and for one that is dialled twice.
    """

    def __init__(self, listen: Iterable[str], dial: Iterable[str] = (), name: str = "device") -> None:
        listen, dial = tuple(listen), tuple(dial)
        self.hub = WatchedHub(name)
        # Trunks of appliances may pass through: leave room for envelopes.
        self.links: list[Link] = [bus_link(url, "listen", trunk=True) for url in listen]
        self.links += [bus_link(url, "dial", trunk=True) for url in dial]
        try:
            check_ends(dial, listen)
        except ValueError as error:
            raise LinkError(str(error)) from None

    def open(self, loop: AbstractEventLoop) -> None:
        """Open all links. Raises `LinkError` for the first that fails, with none left open."""
        try:
            for link in self.links:
                link.open(self.hub, loop)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all links and peers. Idempotent."""
        for link in self.links:
            link.close()

    def hubs(self) -> tuple[Hub, ...]:
        """Return the hub of the device, as a part of a status has its hubs."""
        return (self.hub,)
