"""The building of parts from their records. A running part whose record stays is not touched."""

from asyncio import AbstractEventLoop
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from appliance.parts.bridge import BridgePart
from appliance.parts.broker import BrokerPart
from appliance.parts.bus import BusPart
from appliance.parts.changes import Change
from appliance.parts.device import DevicePart, Joined
from appliance.parts.kinds import part_class
from appliance.parts.site import UNTOUCHED, Revision, Site
from bus.errors import TopologyError
from topologies.resolved.resolve import Resolved

Part = BusPart | BridgePart | BrokerPart | DevicePart
P = TypeVar("P", BusPart, BridgePart, BrokerPart, DevicePart)


class Built(NamedTuple):
    """The parts of a gateway in the order of opening, and how those of them that run already change."""

    parts: dict[str, Part]
    revisions: dict[str, Revision]

    def changes(self, old: Mapping[str, Part], foreseen: bool = False) -> list[Change]:
        """Return what differs from the running parts `old`; if `foreseen`, with what becomes of each link.

        That is for parts that are not open, and never will be.
        """
        removed = [Change("removed", title) for title in old if title not in self.parts]
        added = [Change("added", title) for title in self.parts if title not in old]
        stay = [title for title in self.parts if title in old]
        anew = [Change("changed", title, detail="kind") for title in stay if title not in self.revisions]
        revisions = self.revisions.values()
        revised = [one for each in revisions for one in (each.foreseen() if foreseen else each.changes)]
        return [*removed, *added, *anew, *revised]

    def close(self, old: dict[str, Part]) -> None:
        """Close the parts and links of `old` that go, bridges before buses, so that nothing new enters."""
        for title in reversed(old):
            if title in self.revisions:
                self.revisions[title].close()
            else:
                old[title].close()

    def open(self, loop: AbstractEventLoop) -> list[Change]:
        """Open new parts and links, buses before bridges. Return the failures."""
        opens = [
            self.revisions[title].open if title in self.revisions else part.start
            for title, part in self.parts.items()
        ]
        return [change for opening in opens for change in opening(loop)]


class Builder:
    """Makes the parts of `resolved` that run at `site`: those named in `only`, or all if it is empty.

    `running` are parts that run already, of which those that stay are revised, and `failed` the titles of
    those to which something is to be tried again.
    """

    def __init__(
        self,
        resolved: Resolved,
        site: Site,
        only: frozenset[str],
        running: Mapping[str, Part],
        failed: Collection[str] = (),
    ) -> None:
        self._resolved, self._site, self._only = resolved, site, only
        self._running, self._failed = running, failed
        self._revisions: dict[str, Revision] = {}

    def build(self) -> Built:
        """Return the parts, with nothing changed yet. Devices come first that look into what follows.

        Raises `TopologyError` for a part of `only` that is not there, `LinkError` for what can never work.
        """
        resolved = self._resolved
        brokers = [self._part(BrokerPart, one) for one in self._wanted(resolved.brokers)]
        buses = {one.name: self._part(BusPart, one) for one in self._wanted(resolved.buses)}
        bridges = {one.name: self._part(BridgePart, one, buses) for one in self._wanted(resolved.bridges)}
        devices = self._devices({**buses, **bridges})
        inside = [device for device in devices if device.spec.inside]
        peers = [device for device in devices if not device.spec.inside]
        parts: list[Part] = [*inside, *brokers, *buses.values(), *bridges.values(), *peers]
        self._check_only({part.name for part in parts})
        return Built({part.title: part for part in parts}, self._revisions)

    def _devices(self, joinable: Mapping[str, Joined]) -> list[DevicePart]:
        """Return the devices. A device that looks into parts runs wherever one of these does."""
        made = list[DevicePart]()
        for name, device in self._resolved.devices.items():
            spec = device.spec
            joined = [joinable[part] for part in spec.joins if part in joinable]
            if joined if spec.inside else not self._only or name in self._only:
                made.append(self._part(part_class(spec), device, joined))
        return made

    def _check_only(self, names: set[str]) -> None:
        missing = sorted(self._only - names)
        inside = self._resolved.devices.get(next(iter(missing), ""))
        if inside is not None:
            also = " ".join(f"--only {part}" for part in inside.spec.joins)
            text = f"{missing[0]} is a {inside.spec.key}, and looks into parts of its own process"
            raise TopologyError(f"{text}: it runs in each process that runs one of them; add {also}")
        if missing:
            raise TopologyError(f"gateway {self._site.gateway} runs no {', '.join(missing)}")

    def _wanted(self, records: Mapping[str, Any]) -> list[Any]:
        """Return the records of parts that this process is to run."""
        return [record for name, record in records.items() if not self._only or name in self._only]

    def _part(self, kind: type[P], record: Any, *joined: Any) -> P:
        """Return the running part of that name with a revision, else a new part."""
        title = f"{kind.kind} {record.name}"
        old = self._running.get(title)
        if not isinstance(old, kind) or _is_other_kind(old, record):
            return kind(record, self._site, *joined)
        stays = title not in self._failed and old.resolved == record and self._joins_the_same(old, *joined)
        self._revisions[title] = UNTOUCHED if stays else old.revise(record, *joined)
        return old

    def _joins_the_same(self, old: Part, joined: Iterable[Joined] = ()) -> bool:
        """Return whether a device joins the parts that it has joined, and none of them changes."""
        if not isinstance(old, DevicePart):
            return True  # its record has what it needs to know of others
        before, now = [*map(id, old.joined)], [*map(id, joined)]
        return before == now and all(self._revisions.get(part.title) is UNTOUCHED for part in joined)


def _is_other_kind(old: Part, record: Any) -> bool:
    """Return whether a device is of another kind now."""
    return isinstance(old, DevicePart) and old.spec.key != record.spec.key
