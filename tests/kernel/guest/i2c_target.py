"""A program that stands for a microcontroller: the mailbox in the memory of an emulated chip.

BUS ADDRESS [bytes]. It says again all that it hears. The chip is memory alone (i2c-stub, or QEMU's EEPROM),
so this program reads and writes it through the same adapter; `bytes`: one byte at a time.
"""

import contextlib
import sys
import time

from bridges.media.i2c.adapter import Adapter
from bridges.media.i2c.mailbox import Target
from tests.kernel.guest.support import open_blocks, open_bytes

_CTL = 0x1F  # what the controller writes last


class Chip:
    """The memory at `address`, and the target's end of the mailbox in it."""

    def __init__(self, address: int) -> None:
        self.target, self._address, self._ctl = Target(), address, -1

    def serve(self, adapter: Adapter) -> None:
        """One look at the memory, and what follows. A new ctl means that all before it is written."""
        ctl = adapter.read_i2c_block_data(self._address, _CTL, 1)
        if ctl[0] != self._ctl:
            self._ctl = ctl[0]
            data = adapter.read_i2c_block_data(self._address, 0, _CTL)
            self.target.put(0, bytes(data + ctl))
        for message in self.target.poll(time.monotonic()):
            self.target.send(message)
        self.write(adapter)

    def write(self, adapter: Adapter) -> None:
        for register, data in self.target.changes():
            adapter.write_i2c_block_data(self._address, register, list(data))


def main(number: int, address: int, by_bytes: bool) -> None:
    """Serve until killed; an adapter that goes away is opened again: a chip keeps its memory."""
    chip, announced = Chip(address), False
    while True:
        with contextlib.suppress(OSError):
            with contextlib.closing(open_bytes(number) if by_bytes else open_blocks(number)) as adapter:
                chip.write(adapter)
                if not announced:
                    announced = True
                    print("ready", flush=True)
                while adapter.present():  # the kernel waits until nobody has a lost adapter open
                    chip.serve(adapter)
                    time.sleep(0.001)
        time.sleep(0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2], 0), "bytes" in sys.argv[3:])
