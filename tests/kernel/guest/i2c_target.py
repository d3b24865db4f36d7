"""A program that stands for a microcontroller: the mailbox in the memory of an emulated chip. BUS ADDRESS.

It says again all that it hears. The chip is memory alone (i2c-stub, or QEMU's EEPROM), so this program reads
and writes it through the same adapter.
"""

import contextlib
import sys
import time

from smbus2 import SMBus

from bridges.codecs.mailbox import Target

_HALF = 32  # what the controller writes, and the largest block


def serve(bus: SMBus, address: int, target: Target) -> None:
    """One look at the memory, and what follows."""
    target.put(0, bytes(bus.read_i2c_block_data(address, 0, _HALF)))
    for message in target.poll(time.monotonic()):
        target.send(message)
    write(bus, address, target)


def write(bus: SMBus, address: int, target: Target) -> None:
    for register, data in target.changes():
        bus.write_i2c_block_data(address, register, list(data))


def main(number: int, address: int) -> None:
    """Serve until killed; an adapter that goes away is opened again, as a chip with its memory stays."""
    target, announced = Target(), False
    while True:
        with contextlib.suppress(OSError), SMBus(number) as bus:
            write(bus, address, target)
            if not announced:
                announced = True
                print("ready", flush=True)
            while True:
                serve(bus, address, target)
                time.sleep(0.001)
        time.sleep(0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2], 0))
