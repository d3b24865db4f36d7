"""The link of a side on the TMQ network: one client of its brokers, for as long as the link is open."""

from asyncio import AbstractEventLoop
from collections.abc import Iterable
from typing import Any

from bridges.media.shedding import Shed, checked
from bridges.media.tmq.medium import Tmq
from bridges.media.tmq.pipe import TmqPipe
from bus.errors import LinkError
from bus.hub import Hub, Link, State
from bus.tmq.address import listening, written
from bus.tmq.client import ClientNode
from bus.tmq.options import Options
from bus.tmq.wire import Address
from bus.wire.pattern import Pattern


class TmqLink:
    """A client of TMQ brokers as a link: it publishes what leaves the bridge, and subscribes.

    `mates`: if other gateways run the bridge, the number of this side there; its last 8 bits are those of the
    gateway. Then the link also hears what the forwarding gateway publishes, and sends the others their copies
    last. The link is up while a broker answers, and for a moment after its loss, until all others have been
    tried; its pipe is there as long as it is open. `wanted` are the patterns that it subscribes to. `timing`
    has fields of `bus.tmq.Options`. Raises `LinkError` for settings that can never work.
    """

    condition = ""

    def __init__(self, options: Tmq, shed: Shed | None = None, mates: int = 0, **timing: Any) -> None:
        self.options = options
        self.name = f"tmq:{options.device}"
        self.shed = checked(self.name, shed, options.queue_bytes)
        self._listen = listening((options.host, options.port))
        self._brokers = _addresses(options)
        self._timing = Options(**timing)
        self.mates = mates
        self.wanted = _shortest([*options.subscribe, *(options.publish if mates else ())])
        self._losses = 0
        self._node: ClientNode | None = None
        self._pipe: TmqPipe | None = None
        self._hub: Hub | None = None

    @property
    def url(self) -> str:
        return self.name

    @property
    def address(self) -> Address | None:
        """The address where publishers connect; None while the link is closed."""
        return None if self._pipe is None or self._node is None else self._node.address

    def subscribers(self, pattern: Iterable[int | str]) -> list[Address]:
        """Return the addresses that get what is published under exactly this pattern."""
        return [] if self._node is None else list(self._node.published.get(Pattern(*pattern), ()))

    async def settled(self) -> None:
        """Wait until a broker has taken all registrations so far. The link must be open."""
        assert self._node is not None
        await self._node.settled()

    @property
    def state(self) -> State:
        if self._pipe is None or self._node is None:
            return "closed"
        if self._node.waiting is not None:
            return self._node.waiting.state
        uplink = self._node.uplink
        if uplink.up or uplink.is_moving:  # messages go on between two brokers
            return "up"
        return "waiting" if uplink.fault else "opening"

    @property
    def fault(self) -> str:
        if self._node is None:
            return ""
        return self._node.uplink.fault if self._node.waiting is None else self._node.waiting.fault

    @property
    def losses(self) -> int:
        return self._losses + (0 if self._node is None else self._node.uplink.losses)

    @property
    def queue_bytes(self) -> int:
        return self.shed.queue_bytes

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Listen for publishers, and start to reach a broker. Raises `LinkError` if it never can listen."""
        if self._pipe is not None:
            return
        self._losses, self._node = self.losses, None
        pipe = TmqPipe(self.name, hub, loop, self.options.patterns, self.shed)
        node = ClientNode(self._listen, self._brokers, self._timing, user=pipe, number=self.mates)
        node.open(loop, wait=True)
        self._node, self._pipe, self._hub = node, pipe, hub
        pipe.start(node)
        for counts in (pipe.copies, node.stats):
            hub.keep(f"{self.name} copies", counts)
        for tokens in self.wanted:
            node.subscribe(tokens)
        node.uplink.say([])  # reaches a broker also if nothing is wanted

    def revise(self, other: Link) -> bool:
        """Take over the subscriptions, the bounds and the policy of another link to the same brokers."""
        if not isinstance(other, TmqLink):
            return False
        before, self.wanted = self.wanted, other.wanted
        renumbered = other.mates != self.mates
        self.options, self.shed, self.mates = other.options, other.shed, other.mates
        if self._pipe is not None and self._node is not None:
            if renumbered:
                self._node.renumber(self.mates)
            self._pipe.revise(self.options.patterns, self.shed)
            for tokens in self.wanted:
                if tokens not in before:
                    self._node.subscribe(tokens)
            for tokens in before:  # last, so that nothing is missed that is wanted before and after
                if tokens not in self.wanted:
                    self._node.unsubscribe(tokens)
        return True

    def close(self) -> None:
        """Take all registrations back and disconnect. Idempotent."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None and self._node is not None and self._hub is not None:
            pipe.close()
            for counts in (pipe.copies, self._node.stats):
                self._hub.fold(f"{self.name} copies", counts)


def _addresses(options: Tmq) -> list[Address]:
    """Return the host and port of each broker. Raises `LinkError` for a name: only a topology has names."""
    if options.brokers is None or not all("://" in url for url in options.brokers):
        raise LinkError(f"tmq {options.device}: brokers are needed by address: tcp://HOST:PORT")
    return [written(url) for url in options.brokers]


def _shortest(prefixes: list[tuple[int | str, ...]]) -> list[Pattern]:
    """Return the patterns that start with no other one of them."""
    found = sorted({Pattern(*names) for names in prefixes}, key=len)
    return [one for one in found if not any(other != one and other.matches(one) for other in found)]
