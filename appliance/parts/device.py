"""The base of the parts that run devices."""

from collections.abc import Sequence

from appliance.parts.bridge import BridgePart
from appliance.parts.bus import BusPart
from appliance.parts.changes import differing
from appliance.parts.site import BasePart, Revision, Site
from bus.hub import Hub
from bus.schema import settings_of
from devices.device import DeviceSpec
from topologies.resolved.resolve import ResolvedDevice

Joined = BusPart | BridgePart


class DevicePart(BasePart):
    """A device of a gateway, next to those parts of this process that it joins."""

    kind = "device"

    def __init__(self, resolved: ResolvedDevice, site: Site, joined: Sequence[Joined]) -> None:
        super().__init__(resolved.name, site, Hub(resolved.name))
        self.resolved, self.joined = resolved, joined

    @property
    def spec(self) -> DeviceSpec:
        """The device, as the topology describes it."""
        return self.resolved.spec

    def revise(self, resolved: ResolvedDevice, joined: Sequence[Joined]) -> Revision:
        """Return the change to the device as `resolved` has it. Raises `LinkError` if it can never work."""
        raise NotImplementedError

    def _take(self, resolved: ResolvedDevice, joined: Sequence[Joined]) -> None:
        """Take over another record, and the parts that the device joins now."""
        self.resolved, self.joined = resolved, joined

    def differing(self, resolved: ResolvedDevice) -> list[str]:
        """Return the settings that differ in another record of the same kind, and whether its files do."""
        names = differing(settings_of(self.spec), settings_of(resolved.spec))
        return [*names, "files"] if self.has_renewed(resolved) else names

    def has_renewed(self, resolved: ResolvedDevice) -> bool:
        """Return whether a file that the device has read has another content in another record."""
        old = dict(self.resolved.files)
        return any(old.get(path, stamp) != stamp for path, stamp in resolved.files)
