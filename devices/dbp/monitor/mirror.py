"""The mirror of a node: it publishes copies of messages at the node's sockets, on a port of its own."""

import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from bus.errors import LinkError
from bus.ledger import Stats
from bus.machine.addresses import is_own
from devices.dbp import ports
from devices.dbp.monitor.wire import Direction, Grant, Passed, pack
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Socket

log = logging.getLogger("buscoupler.monitor")

LEASE_S: Final = 10.0
"""The time from the last request for a mirror to its end."""
Audience = Literal["nobody", "host", "all"]
"""The hosts that may get a mirror: none, the node's own machine (`host`), or all that reach the node."""

_OWN: Final = "127.0.0.1"
_LOOK_S: Final = 1.0
_HEAD_BYTES: Final = 1 << 12  # more than a copy has in front of its message
REFUSED: Final = ("not allowed", "no such interface", "no port is free")


class Mirror:
    """The mirror of one node. `interfaces` has the node's sockets by name.

    The mirror listens on `host`, or on 127.0.0.1 if only this machine may have it, at the first free port
    from `port` on. `limits` are those of the sockets: what one of these may queue, the mirror may too.
    `stats` is the ledger of the copies of all leases.
    """

    def __init__(
        self,
        name: str,
        interfaces: Mapping[str, Socket],
        host: str,
        audience: Audience,
        port: int = ports.MONITOR,
        limits: Limits | None = None,
        stats: Stats | None = None,
    ) -> None:
        self.stats = Stats() if stats is None else stats
        self._name, self._interfaces, self._audience, self._first = name, interfaces, audience, port
        self._host = _OWN if audience == "host" else host
        usual = Limits()
        most_bytes = usual.queue_bytes if limits is None else max(limits.queue_bytes, usual.queue_bytes)
        self._limits = replace(usual, queue_bytes=most_bytes + _HEAD_BYTES)
        self._until: dict[str, float] = {}
        self._pub: Socket | None = None
        self._port = 0
        self._timer: TimerHandle | None = None

    @property
    def mirrored(self) -> tuple[str, ...]:
        """The names of the interfaces that are mirrored now."""
        return tuple(self._until)

    def ask(self, interface: str, asker: str, loop: AbstractEventLoop) -> Grant | str:
        """Mirror an interface for a further lease. Return the grant, or a reason of `REFUSED`.

        `asker` is the host of the client.
        """
        if not self._may(asker):
            return "not allowed"
        if interface not in self._interfaces:
            return "no such interface"
        if self._pub is None and not self._open(loop):
            return "no port is free"
        if interface not in self._until:
            log.info("%s: %s asks for a mirror of %s", self._name, asker, interface)
            self._interfaces[interface].watch(partial(self._publish, interface))
        self._until[interface] = loop.time() + LEASE_S
        return Grant(_OWN if self._host == _OWN else "", self._port, int(LEASE_S * 1000))

    def _may(self, asker: str) -> bool:
        return self._audience == "all" or (self._audience == "host" and is_own(asker))

    def _open(self, loop: AbstractEventLoop) -> bool:
        name = f"{self._name}: mirror"
        pub = Socket("pub", lambda _: None, self._limits, name, stats=self.stats)
        pub.open(loop)
        try:
            self._port = pub.bind(self._host, self._first, ports.TRIES)
        except LinkError as error:
            log.warning("%s: no mirror: %s", self._name, error)
            pub.close()
            return False
        self._pub, self._loop = pub, loop
        self._timer = loop.call_later(_LOOK_S, self._tick)
        return True

    def _publish(self, interface: str, direction: Direction, frames: Sequence[bytes], host: str) -> None:
        if self._pub is not None:
            self._pub.send(pack(Passed(interface, direction, time.time(), host, tuple(frames))))

    def _tick(self) -> None:
        """End the mirrors whose lease is over; with the last one, close the port."""
        now_s = self._loop.time()
        for interface in [name for name, until_s in self._until.items() if until_s <= now_s]:
            self._interfaces[interface].unwatch()
            del self._until[interface]
        if self._until:
            self._timer = self._loop.call_later(_LOOK_S, self._tick)
        else:
            self.close()

    def close(self) -> None:
        """End all mirrors. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for interface in self._until:
            self._interfaces[interface].unwatch()
        self._until.clear()
        if self._pub is not None:
            self._pub.close()
            self._pub = None
