"""The TMQ broker as a service: what `buscoupler broker` and a topology's `brokers:` run."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from typing import Any

from bus.hub import Hub, Stats
from bus.tmq.address import endpoint
from bus.tmq.broker.node import BrokerNode
from bus.tmq.broker.registry import Registry
from bus.tmq.connection import Connection
from bus.tmq.options import Options
from bus.tmq.wire import Address

OnBridge = Callable[[bytes, Connection], object]


class Broker:
    """Listens at `listen` (`tcp://HOST:PORT`, one or several), shares registrations with `peers`.

    The peers are brokers of ours, each of which names the others (itself too, if one list serves all).
    `registrations` bounds them in all, `per_address` those of one client, `per_host` those said by one
    host. `on_bridge(frame, connection)` gets each packet with the type bit BRIDGE 0x80:
    `connection.send(frame)` answers, `connection.name` says who, `connection.on_lost(callback)` tells when
    it is gone. More options are the fields of `bus.tmq.Options`. Raises `LinkError`.
    """

    def __init__(
        self,
        listen: str | Address | Iterable[str | Address],
        peers: Iterable[str | Address] = (),
        on_bridge: OnBridge | None = None,
        name: str = "broker",
        registrations: int = 65536,
        per_address: int = 1024,
        per_host: int = 16384,
        classic_prefixes: bool = True,
        **options: Any,
    ) -> None:
        single = isinstance(listen, str) or (isinstance(listen, tuple) and isinstance(listen[-1], int))
        where: Any = [listen] if single else listen
        self.name = name
        self._node = BrokerNode(
            [endpoint(address) for address in where],
            [endpoint(peer) for peer in peers],
            Options(**options),
            Registry(registrations, per_address, per_host),
            classic_prefixes,
            on_bridge,
        )

    def open(self, loop: AbstractEventLoop) -> None:
        """Listen. Raises `LinkError` for the first address that cannot be, with none left open."""
        self._node.open(loop)

    def close(self) -> None:
        """Stop, and close all connections. Idempotent."""
        self._node.close()

    def hubs(self) -> tuple[Hub, ...]:
        """None: nothing that is sent passes through a broker."""
        return ()

    @property
    def on_bridge(self) -> OnBridge | None:
        return self._node.on_bridge

    @on_bridge.setter
    def on_bridge(self, hook: OnBridge | None) -> None:
        self._node.on_bridge = hook

    @property
    def registry(self) -> Registry:
        return self._node.registry

    @property
    def addresses(self) -> list[Address]:
        """Where it listens, with the ports that were bound."""
        return self._node.addresses

    @property
    def urls(self) -> list[str]:
        return [f"tcp://{host}:{port}" for host, port in self.addresses]

    @property
    def stats(self) -> Stats:
        """The ledger of what clients were told, and what was refused, by reason."""
        return self._node.ledger()

    @property
    def counts(self) -> dict[str, int]:
        """Plain numbers for a status page."""
        node = self._node
        listener, sharing = getattr(node, "listener", None), getattr(node, "sharing", None)
        return {
            "registrations": len(node.registry),
            "connections": len(listener.connections) if listener else 0,
            "accepted": listener.accepted if listener else 0,
            "refused": listener.refused if listener else 0,
            "probes": node.probes,
            "deaths": node.deaths,
            "expired": node.expired,
            "routes": node.routes,
            "peers": sharing.up if sharing else 0,
        }
