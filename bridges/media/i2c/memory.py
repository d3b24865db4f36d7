"""An I2C adapter in memory with simulated targets: for tests, trials without hardware, and the simulator."""

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from threading import RLock
from time import monotonic

from bridges.media.i2c.adapter import Adapter
from bridges.media.i2c.mailbox_target import Target


class MemoryAdapter(Adapter):
    """An `Adapter` without faults, with a mailbox `Target` at each address. Others do not acknowledge.

    Use it as `I2cLink(options, adapter=memory.open)`. Each access runs its target. Messages that a target
    receives are appended to `heard[address]` and passed to `on_message(address, message)`;
    `send(address, message)` sends one from it. A target in `hung` is not run: its memory answers, but its
    mailbox is not served. `clock` returns seconds; it must be the loop's clock if that is virtual. `blocks`
    says whether a link uses a thread.

    To add faults, derive from it or wrap it. For transfers a link calls only `read_i2c_block_data` and
    `write_i2c_block_data`: raise OSError there (EREMOTEIO: not acknowledged, ETIMEDOUT: stuck bus), change
    bytes, or wait (if `blocks`). `boot(address)` resets a target and `targets.pop(address)` takes it off the
    bus. `plugged = False` unplugs the adapter: all accesses and `open` fail with ESHUTDOWN.
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
        """Return this adapter, as the factory for `I2cLink(adapter=...)`. Raises OSError while unplugged."""
        self._check_plugged()
        return self

    def present(self) -> bool:
        return self.plugged

    def send(self, address: int, message: bytes) -> bool:
        """Send a message from the target at `address`. Return False if the target dropped it."""
        with self._lock:
            sent = self.targets[address].send(message)
            self._serve(address)
            return sent

    def boot(self, address: int) -> None:
        """Reset the target at `address`, as a short loss of power does."""
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
        """Do nothing: there is nothing to close."""

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
