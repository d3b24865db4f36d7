"""The parts that one gateway runs: a bus, a bridge. Each opens, closes, and can be told from its twin."""

import secrets
import zlib
from asyncio import AbstractEventLoop
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from appliance.media import bus_link, medium_link
from bridges.bridge import Bridge, Side
from bus.errors import LinkError
from bus.hub import Hub, Link, Pipe
from bus.patch import join
from bus.watched import WatchedHub
from topologies.model import BridgeSpec, BusSpec, Dial, Gateway, Listen, Topology
from topologies.model import Side as SideSpec
from topologies.segments import address_of, has_trunk, is_trunk

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
        sockets: Path | None,
    ) -> None:  # fmt: skip
        self.name, self.spec = name, spec
        self._topology, self._gateway, self._buses, self._sockets = topology, gateway, buses, sockets
        here = topology.gateways[gateway]
        self.hub = Bridge(name, origin_of(here, f"bridge {name}"), spec.pattern)
        self._patches: list[Pipe] = []
        self._links: list[tuple[Link, Hub]] = []
        self._seats: list[tuple[Hub, Hub]] = []
        for number, side in enumerate(spec.join):
            self._join(side, _side(self.hub, number, side, is_trunk(topology, side)))

    def _join(self, spec: SideSpec, side: Side) -> None:
        if spec.bus is None:
            self._links.append((medium_link(spec, self._topology.gateways[self._gateway]), side))
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

    def close(self) -> None:
        for patch in self._patches:
            patch.close()
        self._patches.clear()
        for link, _ in self._links:
            link.close()


def _side(bridge: Bridge, number: int, spec: SideSpec, trunk: bool) -> Side:
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
    )
