"""Helpers for tests of a side on the TMQ network: a broker, sides, and sockets of the 2015 reference."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from bridges.media.shedding import Shed
from bridges.media.tmq.link import TmqLink
from bridges.media.tmq.medium import Tmq
from bus.hub import Hub, Pipe
from bus.ledger import Account, Stats
from bus.tmq.broker import Broker
from bus.tmq.wire import Address
from bus.wire.frame import pack
from bus.wire.pattern import Pattern
from tests.bridges.support import RecordingPipe, recorder, say
from tests.helpers.peers import until
from tests.helpers.tmq import ReferenceClient

FAST: dict[str, Any] = {"heartbeat_s": 0.1, "return_s": 0.1, "retry_min_s": 0.01, "retry_max_s": 0.1}
TEMP, ALERT = Pattern("fridge", "temp"), Pattern("fridge", "alert")


def frame(pattern: Pattern, data: bytes = b"", kind: int = 1) -> bytes:
    return pack(kind, pattern, data)


class Bus:
    """A hub with a side on the TMQ network, and a pipe that keeps what comes in by it."""

    def __init__(self, *brokers: str, mates: int = 0, shed: Shed | None = None, **settings: Any) -> None:
        self.link = self.made(brokers, shed, mates, **settings)
        self.hub = Hub("bus")
        self.heard: RecordingPipe = recorder(self.hub)
        self.link.open(self.hub, asyncio.get_running_loop())
        self.pipe: Pipe = self.hub.pipes[-1]

    @staticmethod
    def made(brokers: Iterable[str], shed: Shed | None = None, mates: int = 0, **settings: Any) -> TmqLink:
        """Return a link that is not open. `settings` are fields of the record, and times of its client."""
        timing = {key: settings.pop(key) for key in list(settings) if key.endswith("_s")}
        record = Tmq(brokers=tuple(brokers), **{"host": "127.0.0.1", **settings})
        return TmqLink(record, shed, mates, **{**FAST, **timing})

    @property
    def copies(self) -> Stats:
        """Return what became of copies."""
        return self.hub.accounts().get(f"{self.link.name} copies", Account()).stats

    @property
    def address(self) -> Address:
        assert self.link.address is not None
        return self.link.address

    @property
    def broker(self) -> Address | None:
        """The broker in use; None while none answers."""
        node = self.link._node  # noqa: SLF001 (nothing else shows it)
        return None if node is None else node.uplink.broker

    @property
    def knows_its_mate(self) -> bool:
        """Whether a subscriber has greeted as a mate: it may have got a message before."""
        node = self.link._node  # noqa: SLF001 (nothing else shows it)
        return node is not None and any(map(node.is_mate, node.peers.values()))

    def say(self, *frames: bytes) -> None:
        say(self.hub, self.heard, *frames)


class Network:
    """A broker, or several, with what uses them. `close` ends all, and checks the ledgers."""

    def __init__(self) -> None:
        self.brokers: list[Broker] = []
        self.buses: list[Bus] = []
        self.stack = ExitStack()

    def broker(self, listen: str = "tcp://127.0.0.1:0", **options: Any) -> Broker:
        made = Broker(listen, **{"heartbeat_s": 0.1, "connect_s": 5.0, **options})
        made.open(asyncio.get_running_loop())
        self.brokers.append(made)
        self.stack.callback(made.close)
        return made

    async def bus(self, *brokers: Broker | str, **settings: Any) -> Bus:
        """Return a bus whose side has been registered."""
        urls = (one if isinstance(one, str) else one.urls[0] for one in brokers)
        made = Bus(*urls, **settings)
        self.buses.append(made)
        self.stack.callback(made.link.close)
        await until(lambda: made.link.state == "up")
        await made.link.settled()
        return made

    def reference(self, broker: Broker) -> ReferenceClient:
        return self.stack.enter_context(closing(ReferenceClient(broker.addresses[0])))

    def close(self) -> None:
        self.stack.close()
        for bus in self.buses:
            assert bus.pipe.stats.balance() == 0
            assert bus.pipe.stats.queued == 0


@contextmanager
def network() -> Iterator[Network]:
    made = Network()
    try:
        yield made
    finally:
        made.close()
