"""Debian's micro:bit: MicroPython 1.9.2 in `qemu-system-arm`, with a pseudo-terminal as its serial line."""

import json
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

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


class Microbit:
    """A running board; its serial line is the device `path`. Close it after use."""

    def __init__(self) -> None:
        self._directory = TemporaryDirectory()
        self._control = f"{self._directory.name}/control"
        self._qemu = subprocess.Popen(
            [
                *("qemu-system-arm", "-M", "microbit", "-nographic", "-monitor", "none"),
                *("-device", f"loader,file={FIRMWARE}"),
                *("-chardev", "pty,id=usb", "-serial", "chardev:usb"),
                *("-qmp", f"unix:{self._control},server=on,wait=off"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=os.environ | {"QEMU_AUDIO_DRV": "none"},
        )
        assert self._qemu.stdout is not None
        line = self._qemu.stdout.readline().decode()
        found = re.search(r"redirected to (\S+)", line)
        if found is None:
            self.close()
            raise AssertionError(f"qemu printed {line!r}, not the name of its pseudo-terminal")
        self.path = found[1]

    def reset(self) -> None:
        """Press the reset button."""
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(self._control)
            for command in ("qmp_capabilities", "system_reset"):
                control.recv(4096)
                control.sendall(json.dumps({"execute": command}).encode())
            control.recv(4096)

    def close(self) -> None:
        self._qemu.kill()
        self._qemu.communicate()
        self._directory.cleanup()
