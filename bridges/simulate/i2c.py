"""A simulated I2C bus: the real controller link, and mailbox targets that can each join a hub."""

import errno
from asyncio import AbstractEventLoop
from collections.abc import Iterable, Sequence
from typing import Any

from bridges.media.i2c.link import I2cLink, Opened
from bridges.media.i2c.mailbox_target import Target
from bridges.media.i2c.medium import I2c
from bridges.media.i2c.memory import MemoryAdapter
from bridges.simulate.wire import Faults, Wire, flip_bits, settings, trouble
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads


class I2cWire(Wire):
    """A bus with a mailbox target at each of `addresses`. A transaction takes no time.

    `loss` is the rate of transactions without acknowledgement, `corruption` the rate of bytes with a flipped
    bit. `stuck = True` holds the lines low: every transaction times out. `unplug()` removes the adapter
    from the machine until `plug()`.
    """

    has = frozenset({"loss", "corruption"})

    def __init__(self, addresses: Iterable[int], seed: int = 0, faults: Faults | None = None) -> None:
        super().__init__(seed, faults)
        self.adapter = _Adapter(self, addresses)
        self.targets = {address: I2cTarget(self.adapter, address) for address in self.adapter.targets}

    def link(self, **options: Any) -> "SimulatedI2c":
        """Return an `I2cLink` to all targets; `options`: fields of `I2c` and arguments of `I2cLink`."""
        return SimulatedI2c(self, **options)

    def unplug(self) -> None:
        self.adapter.plugged = False

    def plug(self) -> None:
        self.adapter.plugged = True


class _Adapter(MemoryAdapter):
    """A memory adapter with the wire's faults."""

    loop: AbstractEventLoop

    def __init__(self, wire: I2cWire, addresses: Iterable[int]) -> None:
        super().__init__(addresses, clock=lambda: self.loop.time())
        self._wire = wire

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]:
        self._may_fail(i2c_addr)
        return list(self._bend(i2c_addr, "read", super().read_i2c_block_data(i2c_addr, register, length)))

    def write_i2c_block_data(self, i2c_addr: int, register: int, data: Sequence[int]) -> None:
        self._may_fail(i2c_addr)
        super().write_i2c_block_data(i2c_addr, register, self._bend(i2c_addr, "write", data))

    def _may_fail(self, address: int) -> None:
        wire = self._wire
        if wire.stuck:
            raise trouble(errno.ETIMEDOUT)
        if wire.chance(wire.faults.loss):
            wire.note(self.loop, f"{address:#04x}", "nack")
            raise trouble(errno.EREMOTEIO)

    def _bend(self, address: int, what: str, data: Sequence[int]) -> bytes:
        bent = flip_bits(bytes(data), self._wire.random, self._wire.faults.corruption)
        self._wire.note(self.loop, f"{address:#04x}", what, bent)
        return bent


class I2cTarget(Pipe):
    """A target as the only pipe of a hub, after `join`. Messages from the hub wait for the controller's poll.

    With `clogged = True` nobody serves the mailbox. `reset()` acts as a power-up. After `unplug()` the target
    does not acknowledge until `plug()`, which also boots it.
    """

    def __init__(self, adapter: MemoryAdapter, address: int) -> None:
        self.name = self.link = f"target {address:#04x}"
        self.address = address
        self.mailbox: Target = adapter.targets[address]
        self._adapter, self._stats = adapter, Stats()
        self._hub: Hub | None = None
        self._closed = 0

    def join(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Publish the controller's messages on `hub`, and offer the hub's messages to the controller."""
        self._hub, self._loop = hub, loop
        others = self._adapter.on_message

        def on_message(address: int, message: bytes) -> None:
            if address == self.address:
                loop.call_soon_threadsafe(self._publish, message)
            else:
                others(address, message)

        self._adapter.on_message = on_message
        hub.attach(self)

    def _publish(self, message: bytes) -> None:
        if self._hub is not None:
            self._hub.publish(from_payloads([message]), self)

    @property
    def stats(self) -> Stats:
        """The ledger of this end, as the mailbox keeps it."""
        stats, mailbox = self._stats, self.mailbox
        stats.offered, stats.sent, stats.queued = mailbox.offered + self._closed, mailbox.sent, mailbox.queued
        stats.dropped = dict(mailbox.dropped) | ({"closed": self._closed} if self._closed else {})
        stats.rejected = mailbox.rejected
        return stats

    @stats.setter
    def stats(self, _: Stats) -> None:
        """Ignore the new value: a pipe's ledger can be set, but this one belongs to the mailbox."""

    @property
    def clogged(self) -> bool:
        return self.address in self._adapter.hung

    @clogged.setter
    def clogged(self, clogged: bool) -> None:
        (self._adapter.hung.add if clogged else self._adapter.hung.discard)(self.address)

    def reset(self) -> None:
        self.mailbox.boot()

    def unplug(self) -> None:
        self._adapter.targets.pop(self.address, None)

    def plug(self) -> None:
        self.mailbox.boot()
        self._adapter.targets[self.address] = self.mailbox

    def send(self, batch: Batch) -> None:
        if self._hub is None:
            self._closed += batch.count
            return
        for message in payloads(batch):
            if self.address in self._adapter.targets:
                self._adapter.send(self.address, message)
            else:
                self.mailbox.send(message)

    def close(self) -> None:
        """Leave the hub, and drop messages that wait, or that crossed without being published. Idempotent."""
        if self._hub is not None:
            self.mailbox.boot("closed")
            self._hub.detach(self)
            self._hub = None


class SimulatedI2c(I2cLink):
    """An `I2cLink` on a simulated bus; the rest is the real link."""

    def __init__(self, wire: I2cWire, **options: Any) -> None:
        bus, rest = settings(wire, I2c, options, bus=0, targets=tuple(wire.targets))
        super().__init__(bus, wire.adapter.open, **rest)
        self.wire = wire

    def _open_device(self) -> Opened:
        self.wire.adapter.loop = self._loop
        return super()._open_device()
