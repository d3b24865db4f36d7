"""The parts that one gateway runs: a bus, a bridge. Each opens, closes, and can be told from its twin."""

import secrets
import zlib
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from appliance.brokers import broker_addresses, candidate_of
from appliance.media import bus_link, medium_link
from bridges.bridge import Bridge, Side
from bridges.handover.window import AGE_S
from bridges.holdoff import STEP_S
from bus.errors import LinkError
from bus.hub import Hub, Link, Pipe
from bus.leases.candidacy import Candidacy, Record
from bus.leases.candidate import Candidate
from bus.patch import join
from bus.watched import WatchedHub
from topologies.model import BridgeSpec, BusSpec, Dial, Gateway, Listen, Topology
from topologies.model import Side as SideSpec
from topologies.ranks import rank_of
from topologies.segments import Joint, address_of, has_trunk, is_trunk

_DEAF = ("i2c", "tcp")  # point to point: a standby does not hear there what the active bridge sends
LOCAL_SOCKET = "{bus}{trunk}.sock"


def origin_of(gateway: Gateway, part: str) -> int:
    """Who a part is in envelopes: each part its own, or one would take another for its echo."""
    if gateway.origin is None:
        return secrets.randbits(32)
    return zlib.crc32(f"{gateway.origin}/{part}".encode())


def local_socket(directory: Path, bus: str, trunk: bool) -> str:
    """Where a bus is met by parts of the same gateway that run in processes of their own."""
    return f"ipc://{directory / LOCAL_SOCKET.format(bus=bus, trunk='.trunk' if trunk else '')}"


class BusPart:
    """A bus: a plain hub; or, where a trunk reaches it, a bridge with a plain side and a trunk side."""

    def __init__(self, name: str, spec: BusSpec, gateway: Gateway, sockets: Path | None) -> None:
        self.name, self.spec = name, spec
        self.hub: Hub = WatchedHub(name)
        self.plain: Hub = self.hub
        self.trunk: Hub | None = None
        if has_trunk(spec):
            self.hub = bridge = Bridge(name, origin_of(gateway, f"bus {name}"))
            self.plain, self.trunk = bridge.side("plain"), bridge.side("trunk", trunk=True)
        self._links = [(self._link(a, "listen"), self._on(a.trunk)) for a in spec.listen]
        self._links += [(self._link(a, "dial"), self._on(a.trunk)) for a in spec.dial]
        if sockets is not None:
            self._links += self._local_links(sockets)

    def _link(self, address: Listen | Dial, mode: str) -> Link:
        return bus_link(address.url, mode, *self.spec.limits(address), address.tls)

    def _local_links(self, sockets: Path) -> list[tuple[Link, Hub]]:
        trunks = (False, True) if self.trunk is not None else (False,)
        return [
            (bus_link(local_socket(sockets, self.name, trunk), "listen", None, None, None), self._on(trunk))
            for trunk in trunks
        ]

    def _on(self, trunk: bool) -> Hub:
        return self.trunk if trunk and self.trunk is not None else self.plain

    @property
    def links(self) -> list[Link]:
        return [link for link, _ in self._links]

    def seat(self, trunk: bool | None) -> Hub:
        """Where a bridge of this process joins: the trunk side if there is one, unless told otherwise."""
        return self._on(trunk is not False)

    def open(self, loop: AbstractEventLoop) -> None:
        for link, hub in self._links:
            link.open(hub, loop)

    def close(self) -> None:
        for link, _ in self._links:
            link.close()


class BridgePart:
    """A bridge: its sides, a link for each medium, and a patch to each bus of this process."""

    def __init__(
        self, name: str, spec: BridgeSpec, topology: Topology, gateway: str, buses: dict[str, BusPart],
        sockets: Path | None, record: Record,
    ) -> None:  # fmt: skip
        self.name, self.spec = name, spec
        self._topology, self._gateway, self._buses, self._sockets = topology, gateway, buses, sockets
        self._candidate = candidate_of(name, spec, topology, gateway)
        self.hub = Bridge(name, self._origin(), spec.pattern)
        self._patches: list[Pipe] = []
        self.media: list[Link] = []
        """The links to media, without those that dial a bus."""
        self._links: list[tuple[Link, Hub]] = []
        self._seats: list[tuple[Hub, Hub]] = []
        for number, side in enumerate(spec.join):
            trunk = is_trunk(topology, side)
            rank = rank_of(topology, Joint(name, spec, side, gateway))
            needed = (lambda: True) if rank.others else self._not_alone
            self._join(side, _side(self.hub, number, side, trunk, STEP_S * sum(rank), needed))
        self.candidacy = None if self._candidate is None else self._stand_by(self._candidate, record)

    def _origin(self) -> int:
        if self._candidate is not None:  # candidates for one bridge stamp alike
            return zlib.crc32(f"{self._topology.name}/bridge {self.name}".encode())
        return origin_of(self._topology.gateways[self._gateway], f"bridge {self.name}")

    def _stand_by(self, candidate: Candidate, record: Record) -> Candidacy:
        """Forward only while we hold the lease."""
        ages = [side.shed.age_ms / 1000 for side in self.spec.join if side.shed and side.shed.age_ms]
        deaf = [
            made.name for side, made in zip(self.spec.join, self.hub.sides, strict=True) if side.kind in _DEAF
        ]
        gate = self.hub.stand_by(candidate.may_forward, lambda: candidacy.judge(), deaf, min([AGE_S, *ages]))
        candidacy = Candidacy(candidate, broker_addresses(self._topology), gate, self.links_up, record)
        return candidacy

    def _not_alone(self) -> bool:
        return self._candidate is None or not self._candidate.alone

    def links_up(self) -> bool:
        """Whether frames can pass on every side: a candidate that cannot must not be chosen."""
        up = all(link.state == "up" and link.condition != "bus-off" for link in self.links)
        served = all(side.ports for side in self.hub.sides if side.name not in self._awaiting)
        return served and up

    @property
    def _awaiting(self) -> set[str]:
        """Sides that wait for others to come: they are up without anybody."""
        sides = zip(self.spec.join, self.hub.sides, strict=True)
        return {made.name for side, made in sides if getattr(side.medium, "mode", "") == "listen"}

    def _join(self, spec: SideSpec, side: Side) -> None:
        if spec.bus is None:
            self.media.append(medium_link(spec, self._topology.gateways[self._gateway]))
            self._links.append((self.media[-1], side))
        elif spec.bus in self._buses:
            self._seats.append((self._buses[spec.bus].seat(spec.trunk), side))
        else:
            self._links.append((self._dial_bus(spec.bus, side.trunk), side))

    def _dial_bus(self, bus: str, trunk: bool) -> Link:
        spec = self._topology.buses[bus]
        if spec.on == self._gateway and self._sockets is not None:
            return bus_link(local_socket(self._sockets, bus, trunk), "dial", None, None, None)
        found = address_of(self._topology, bus, self._gateway, trunk)
        if found is None:
            kind = "a trunk address" if trunk else "an address"
            raise LinkError(f"bus {bus}: it does not listen on {kind} that {self._gateway} can reach")
        url, listen = found
        return bus_link(url, "dial", *spec.limits(listen), listen.tls)

    @property
    def links(self) -> list[Link]:
        return [link for link, _ in self._links]

    def open(self, loop: AbstractEventLoop) -> None:
        for seat, side in self._seats:
            self._patches.append(join(seat, side, self.name)[0])
        for link, hub in self._links:
            link.open(hub, loop)
        if self.candidacy is not None:
            self.candidacy.open(loop)

    def close(self) -> None:
        if self.candidacy is not None:
            self.candidacy.close()
        for patch in self._patches:
            patch.close()
        self._patches.clear()
        for link, _ in self._links:
            link.close()


def _side(
    bridge: Bridge, number: int, spec: SideSpec, trunk: bool, hold_s: float, hold_needed: Callable[[], bool]
) -> Side:
    """A side that lets through what the bridge's words say; an own `pattern` holds both ways."""
    only: Iterable[Any] = [spec.pattern] if spec.pattern else []
    return bridge.side(
        f"{number} {spec.kind}",
        trunk,
        allow=[*only, *spec.allow.both],
        deny=spec.deny.both,
        allow_in=spec.allow.inward,
        deny_in=spec.deny.inward,
        allow_out=spec.allow.outward,
        deny_out=spec.deny.outward,
        hold_s=hold_s,
        hold_needed=hold_needed,
    )
