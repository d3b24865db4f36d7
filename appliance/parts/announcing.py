"""Announcements of the addresses of a part on the LAN, where the topology asks for them."""

from asyncio import AbstractEventLoop
from collections.abc import Iterable, Iterator, Sequence

from appliance.parts.changes import Change, differing
from devices.dbp.beacon.sending import Announcement, Sender
from topologies.model import BrokerAddress, Listen

Said = BrokerAddress | Listen


class Announcer:
    """The beacons of one part."""

    def __init__(self) -> None:
        self._said: list[Announcement] = []
        self._sender = Sender(())

    def say(self, loop: AbstractEventLoop, announcements: Iterable[Announcement | None]) -> None:
        """Announce these addresses from now on, and no others. None is an address without a beacon."""
        said = [one for one in announcements if one is not None]
        if said != self._said:
            self._sender.close()
            self._said, self._sender = said, Sender(said)
            if said:
                self._sender.open(loop)

    def close(self) -> None:
        """Stop announcing. Idempotent."""
        self._sender.close()
        self._said = []


def said_changes(part: str, old: Sequence[Said], new: Sequence[Said]) -> Iterator[Change]:
    """Yield the changes of addresses that stay, in settings that their links do not have."""
    before = {address.url: address for address in old}
    for address in new:
        names = differing(_said(before.get(address.url, address)), _said(address))
        if names:
            yield Change("changed", part, f"listen {address.url}", ", ".join(names))


def _said(address: Said) -> dict[str, bool]:
    last_values = isinstance(address, Listen) and address.last_values
    return {"beacon": address.beacon, "last_values": last_values}
