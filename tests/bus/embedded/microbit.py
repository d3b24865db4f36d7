"""Debian's micro:bit: MicroPython 1.9.2 in `qemu-system-arm`, with a pseudo-terminal as its serial line."""

import shutil
from pathlib import Path

from tests.bus.embedded.emulated import Qemu

FIRMWARE = Path("/usr/share/firmware-microbit-micropython/firmware.hex")
MISSING = " and ".join(
    name
    for name, there in (
        ("qemu-system-arm", shutil.which("qemu-system-arm") is not None),
        ("firmware-microbit-micropython", FIRMWARE.exists()),
    )
    if not there
)
"""The needed Debian packages that are not installed."""


class Microbit(Qemu):
    """A running board."""

    def __init__(self) -> None:
        super().__init__("qemu-system-arm", "microbit", "-device", f"loader,file={FIRMWARE}")
