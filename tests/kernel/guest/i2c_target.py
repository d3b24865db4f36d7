"""A program in place of a microcontroller: it echoes through the mailbox in the memory of an emulated chip.

Its arguments: BUS ADDRESS [bytes]. The chip is only memory (i2c-stub, or QEMU's EEPROM), so this program
reads and writes it through the same adapter; with `bytes`, one byte at a time.
"""

import contextlib
import sys
import time

from bridges.media.i2c.adapter import Adapter
from bridges.media.i2c.mailbox_target import Target
from tests.kernel.guest.support import open_blocks, open_bytes

_CTL = 0x1F  # the register that the controller writes last


class Chip:
    """The memory at `address`, with the target's end of the mailbox."""

    def __init__(self, address: int) -> None:
        self.target, self._address, self._ctl = Target(), address, -1

    def serve(self, adapter: Adapter) -> None:
        """Read the memory once and react. A new control byte means that the bytes before it are complete."""
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
    """Serve until killed. Open an adapter again that was removed: a chip keeps its memory."""
    chip, announced = Chip(address), False
    while True:
        with contextlib.suppress(OSError):
            with contextlib.closing(open_bytes(number) if by_bytes else open_blocks(number)) as adapter:
                chip.write(adapter)
                if not announced:
                    announced = True
                    print("ready", flush=True)
                while adapter.present():  # the kernel waits until a removed adapter is closed by all
                    chip.serve(adapter)
                    time.sleep(0.001)
        time.sleep(0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2], 0), "bytes" in sys.argv[3:])
