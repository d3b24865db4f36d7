"""Wires of the kernel for a plant in real time: a serial line of ptys, and a virtual CAN interface."""

import contextlib
import os
import pty
import subprocess
import tty
from asyncio import AbstractEventLoop
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from bridges.media.medium import Medium
from bridges.simulate import SimulationError
from bus.machine.scratch import Scratch

_READ_BYTES: Final = 65_536
_CAN: Final = "280"  # ARPHRD_CAN
_FD_BYTES: Final = "72"  # the MTU of an interface that carries CAN FD
Hear = Callable[[bytes], object]


class RealEnd:
    """An end that a gateway has on a wire of the kernel."""

    def medium(self, medium: Medium) -> Medium:
        """Return the record of a medium whose links are there."""
        raise NotImplementedError

    def plug(self) -> None:
        """Put the device there again."""

    def unplug(self) -> None:
        """Take the device away, as far as that can be."""


class RealWire(Protocol):
    """A wire of the kernel: `kind` is the word for it. While it is `stuck` it carries nothing."""

    kind: str
    stuck: bool

    def end(self, name: str) -> RealEnd:
        """Make an end for a gateway, or for a test."""

    def open(self, loop: AbstractEventLoop) -> None:
        """Carry from now on. Call it on the loop."""

    def close(self) -> None:
        """End it. Idempotent."""


class PtyLine:
    """A serial line: what one end writes all others read, without a baud rate."""

    kind = "pty"

    def __init__(self) -> None:
        self.stuck = False
        self.ends: list[PtyEnd] = []
        self.hears: list[Hear] = []
        self._scratch = Scratch("plant-")
        self.folder = Path(self._scratch.name)
        self.loop: AbstractEventLoop | None = None

    def end(self, name: str) -> "PtyEnd":
        made = PtyEnd(self, self.folder / name.replace("/", "-"))
        self.ends.append(made)
        made.plug()
        return made

    def open(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        for end in self.ends:
            end.listen()

    def write(self, data: bytes, sender: "PtyEnd | None" = None) -> None:
        """Have all ends but the sender's read bytes; a test hears those of others."""
        if self.stuck:
            return
        for end in self.ends:
            if end is not sender:
                end.write(data)
        for hear in self.hears if sender is not None else ():
            hear(data)

    def close(self) -> None:
        for end in self.ends:
            end.unplug()
        self._scratch.close()


class PtyEnd(RealEnd):
    """An end of a line: a pty at `path`, which is gone while it is unplugged."""

    def __init__(self, line: PtyLine, path: Path) -> None:
        self._line, self.path = line, path
        self._files: tuple[int, ...] = ()

    def medium(self, medium: Medium) -> Medium:
        values: dict[str, Any] = {"port": str(self.path)}
        return replace(medium, **values)

    def plug(self) -> None:
        if not self._files:
            self._files = pty.openpty()
            tty.setraw(self._files[1])  # kept open: else a read fails while no gateway has it open
            os.set_blocking(self._files[0], False)
            self.path.symlink_to(os.ttyname(self._files[1]))
            self.listen()

    def listen(self) -> None:
        """Carry what comes, if the line is open."""
        if self._line.loop is not None and self._files:
            self._line.loop.add_reader(self._files[0], self._on_readable)

    def _on_readable(self) -> None:
        with contextlib.suppress(OSError):
            self._line.write(os.read(self._files[0], _READ_BYTES), self)

    def write(self, data: bytes) -> None:
        """Have the device read bytes. What its buffer does not hold is lost, as on a line."""
        if self._files:
            with contextlib.suppress(OSError):
                os.write(self._files[0], data)

    def unplug(self) -> None:
        files, self._files = self._files, ()
        if files and self._line.loop is not None and not self._line.loop.is_closed():
            self._line.loop.remove_reader(files[0])
        for file in files:
            os.close(file)
        self.path.unlink(missing_ok=True)


class VirtualCan:
    """A virtual CAN interface, which all ends share. One that was `made` here goes at the end."""

    kind = "vcan"

    def __init__(self, name: str, made: bool) -> None:
        self.name, self._made, self._is_stuck = name, made, False

    @property
    def stuck(self) -> bool:
        return self._is_stuck

    @stuck.setter
    def stuck(self, stuck: bool) -> None:
        if not ip("link", "set", self.name, "down" if stuck else "up"):
            raise SimulationError(f"{self.name} cannot be cut: that needs the rights to set an interface")
        self._is_stuck = stuck

    def end(self, name: str) -> "VirtualCanEnd":
        return VirtualCanEnd(self.name)

    def open(self, loop: AbstractEventLoop) -> None:
        """Do nothing: the kernel carries."""

    def close(self) -> None:
        if self._made:
            ip("link", "delete", self.name)


class VirtualCanEnd(RealEnd):
    """A socket on the interface: a gateway that ends closes it, and nothing else takes it away."""

    def __init__(self, interface: str) -> None:
        self._interface = interface

    def medium(self, medium: Medium) -> Medium:
        values: dict[str, Any] = {"interface": "socketcan", "channel": self._interface}
        return replace(medium, **values)


def ip(*words: str) -> bool:
    """Run `ip` and return whether it did as told."""
    try:
        ended = subprocess.run(["ip", *words], capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return False
    return ended.returncode == 0


def virtual_can(channel: str, number: int) -> VirtualCan | None:
    """Return the virtual interface that is called `channel`, or a new one; None where there can be none.

    An interface of hardware is never used, whatever its name.
    """
    folder = Path("/sys/class/net") / channel
    with contextlib.suppress(OSError, ValueError):
        virtual = "/devices/virtual/" in str(folder.resolve())
        if virtual and (folder / "type").read_text().strip() == _CAN:
            return VirtualCan(channel, False)
    name = f"plant{os.getpid() % 100_000}.{number}"
    if not ip("link", "add", "dev", name, "mtu", _FD_BYTES, "type", "vcan"):
        return None
    if not ip("link", "set", name, "up"):
        ip("link", "delete", name)
        return None
    return VirtualCan(name, True)
