"""Probing: finds out whether clients are alive, by a packet to each on a new connection, within bounds."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from itertools import islice

import bus.tmq.wire as wire
from bus.tmq.broker.common import Common
from bus.tmq.broker.outgoing import Outgoing
from bus.tmq.wire import Address
from bus.wire.frame import PUB, pack

PROBES = 1024  # addresses probed at a time
LAPSED_AT_ONCE = 64  # clients of a silent broker, a heartbeat; they take half of the probes at most
AGAIN_S = 5.0  # a client that was found alive is not probed again within
_SHOWN = 128  # subscribers, in a question to a publisher whether it lives


class Probing:
    """The probes of one broker. `count` counts them all.

    `is_ours(address)` tells whether a client has greeted, so that it takes a greeting. `outgoing` reports the
    result of each probe to the broker, which calls `alive` or `forget`.
    """

    def __init__(self, common: Common, outgoing: Outgoing, is_ours: Callable[[Address], bool]) -> None:
        self.count = 0
        self._registry, self._hello, self._reject = common.registry, common.hello, common.reject
        self._outgoing, self._is_ours = outgoing, is_ours
        self._probed: dict[Address, float] = {}
        self._lapsed: dict[Address, None] = {}

    def open(self, loop: AbstractEventLoop) -> None:
        """Use this loop from now on."""
        self._loop = loop

    def report(self, addresses: Iterable[Address], host: str, verified: bool) -> None:
        """Probe clients that `host` reports as dead. `verified`: another broker has probed them itself."""
        for address in addresses:
            if self._registry.knows(address):
                self.probe(address, verified)
            else:
                self._reject("report of a stranger", host)

    def probe(self, address: Address, verified: bool = False) -> None:
        """Ask whether a client lives. `verified`: its connection was lost, or another broker found none."""
        now_s = self._loop.time()
        if not verified and now_s - self._probed.get(address, -AGAIN_S) < AGAIN_S:
            return
        if len(self._probed) >= PROBES:
            return self._reject("probes full")
        self._probed[address] = now_s
        self.count += 1
        self._outgoing.probe(address, self._question(address))

    def _question(self, address: Address) -> bytes:
        """Return a packet that does no harm: a reference client fails on a connection without one.

        It also fails on a pattern that it does not know. So a publisher is told its subscribers again, and a
        mere subscriber gets an empty message.
        """
        if self._is_ours(address):
            return wire.pack_hello(self._hello(0))
        known = self._registry.of(address)
        published = next((tokens for role, tokens in known if role == PUB), None)
        if published is not None:
            some = list(islice(self._registry.each_subscriber(published), _SHOWN))
            return wire.address_frames(wire.ADD, published, some)[0]
        return pack(wire.MESSAGE, next(tokens for _, tokens in known))

    def probe_lapsed(self, lapsed: Iterable[Address]) -> None:
        """Probe some of the clients whose broker is silent; call it once a heartbeat with all of them."""
        self._lapsed = dict.fromkeys(lapsed)
        room = min(LAPSED_AT_ONCE, max(0, PROBES // 2 - len(self._probed)))
        left = (each for each in self._lapsed if each not in self._probed and self._registry.knows(each))
        for address in list(islice(left, room)):
            self.probe(address)

    def alive(self, address: Address) -> bool:
        """Note that a client lives. Return whether its broker is silent, so that this one takes it over."""
        lapsed = address in self._lapsed
        self._lapsed.pop(address, None)
        return lapsed

    def forget(self, address: Address) -> None:
        """Forget a client that is gone. Idempotent."""
        self._probed.pop(address, None)

    def tick(self, now_s: float) -> None:
        """Let clients be probed again whose probe is long ago. Call it once a heartbeat."""
        self._probed = {address: at_s for address, at_s in self._probed.items() if now_s - at_s < AGAIN_S}
