"""An I2C adapter in memory, with targets on it: for tests, a desk without hardware, and the simulator."""

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from threading import RLock
from time import monotonic

from bridges.media.i2c.adapter import Adapter
from bridges.media.i2c.mailbox_target import Target


class MemoryAdapter(Adapter):
    """An `Adapter` without faults: a mailbox `Target` at each address; elsewhere nobody acknowledges.

    `I2cLink(1, [0x42], adapter=memory.open)`. Each access runs its target; what that hears is in
    `heard[address]` and goes to `on_message(address, message)`; `send(address, message)` makes it speak.
    A target in `hung` is not run: its memory answers, nobody serves it. `clock` gives seconds, and must be
    the loop's where that is virtual; `blocks` says whether a link uses a thread.

    To add faults, derive from it or wrap it. A link calls `read_i2c_block_data` and `write_i2c_block_data`
    only: raise OSError there (EREMOTEIO: not acknowledged, ETIMEDOUT: stuck bus), change bytes, or wait
    (where `blocks`). `boot(address)` resets a target, `targets.pop(address)` takes it off the bus,
    `plugged = False` takes the adapter away: all accesses fail with ESHUTDOWN, and so does `open`.
    """

    def __init__(
        self, addresses: Iterable[int], clock: Callable[[], float] = monotonic, blocks: bool = False
    ) -> None:
        self.targets = {address: Target() for address in addresses}
        self.heard: dict[int, list[bytes]] = {address: [] for address in self.targets}
        self.hung: set[int] = set()
        self.plugged, self.blocks = True, blocks
        self.on_message: Callable[[int, bytes], None] = lambda address, message: None
        self.clock = clock
        self._lock = RLock()

    def open(self) -> "MemoryAdapter":
        """Return the factory for `I2cLink(adapter=...)`: itself, or OSError while it is unplugged."""
        self._check_plugged()
        return self

    def present(self) -> bool:
        return self.plugged

    def send(self, address: int, message: bytes) -> bool:
        """Let the target at `address` say something. Return False if its queue was full."""
        with self._lock:
            sent = self.targets[address].send(message)
            self._serve(address)
            return sent

    def boot(self, address: int) -> None:
        """The target at `address` loses its power for a moment."""
        with self._lock:
            self.targets[address].boot()

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]:
        with self._lock:
            target = self._at(i2c_addr)
            self._serve(i2c_addr)
            return list(target.memory[register : register + length])

    def write_i2c_block_data(self, i2c_addr: int, register: int, data: Sequence[int]) -> None:
        with self._lock:
            target = self._at(i2c_addr)
            target.put(register, bytes(data))
            self._serve(i2c_addr)

    def close(self) -> None:
        """Nothing to let go of."""

    def _check_plugged(self) -> None:
        if not self.plugged:
            raise OSError(errno.ESHUTDOWN, os.strerror(errno.ESHUTDOWN))

    def _at(self, address: int) -> Target:
        self._check_plugged()
        if address not in self.targets:
            raise OSError(errno.EREMOTEIO, os.strerror(errno.EREMOTEIO))
        return self.targets[address]

    def _serve(self, address: int) -> None:
        if address in self.hung:
            return
        for message in self.targets[address].poll(self.clock()):
            self.heard[address].append(message)
            self.on_message(address, message)
