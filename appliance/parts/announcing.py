"""Announces the addresses of a part on the LAN, where the topology says so."""

from asyncio import AbstractEventLoop
from collections.abc import Iterable

from appliance.parts.changes import Change
from devices.beacon.sending import Announcement, Sender
from topologies.model import BrokerAddress


class Announcer:
    """The beacons of one part."""

    def __init__(self) -> None:
        self._said: list[Announcement] = []
        self._sender = Sender(())

    def say(self, loop: AbstractEventLoop, announcements: Iterable[Announcement | None]) -> None:
        """Announce these from now on, and nothing else. None is what a beacon cannot name."""
        said = [one for one in announcements if one is not None]
        if said != self._said:
            self._sender.close()
            self._said, self._sender = said, Sender(said)
            if said:
                self._sender.open(loop)

    def close(self) -> None:
        """Say nothing more. Idempotent."""
        self._sender.close()
        self._said = []


def beacon_changes(part: str, old: Iterable[BrokerAddress], new: Iterable[BrokerAddress]) -> list[Change]:
    """Return the changes of addresses that stay, and are announced in one of two versions only."""
    before = {address.url: address.beacon for address in old}
    return [
        Change("changed", part, f"listen {address.url}", "beacon")
        for address in new
        if before.get(address.url, address.beacon) != address.beacon
    ]
