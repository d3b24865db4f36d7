"""Emulated boards: each runs in a process, with a pseudo-terminal as its serial line."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Sequence
from tempfile import TemporaryDirectory

REDIRECTED = re.compile(r"redirected to (\S+)")
LINES_MAX = 20
"""Lines that an emulator may print before the name of the pseudo-terminal."""


class Emulated:
    """A running board; its serial line is the device `path`. Close it after use."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=os.environ | {"QEMU_AUDIO_DRV": "none"},
        )
        assert self.process.stdout is not None
        said = ""
        for _ in range(LINES_MAX):
            said += self.process.stdout.readline().decode()
            found = REDIRECTED.search(said)
            if found is not None:
                self.path = found[1]
                return
        self.close()
        raise AssertionError(f"{command[0]} printed {said!r}, not the name of its pseudo-terminal")

    def reset(self) -> None:
        """Press the reset button."""
        self.process.send_signal(signal.SIGUSR1)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class Qemu(Emulated):
    """A board in QEMU: its program, its machine, and further words."""

    def __init__(self, program: str, machine: str, *words: str) -> None:
        self._directory = TemporaryDirectory()
        self._control = f"{self._directory.name}/control"
        super().__init__(
            [
                *(program, "-M", machine, "-nographic", "-monitor", "none", *words),
                *("-chardev", "pty,id=usb", "-serial", "chardev:usb"),
                *("-qmp", f"unix:{self._control},server=on,wait=off"),
            ]
        )

    def reset(self) -> None:
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(self._control)
            for command in ("qmp_capabilities", "system_reset"):
                control.recv(4096)
                control.sendall(json.dumps({"execute": command}).encode())
            control.recv(4096)

    def close(self) -> None:
        super().close()
        self._directory.cleanup()
