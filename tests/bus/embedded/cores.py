"""The node in C as firmware on emulated cores, which the node in Python talks to.

Each turn sends one frame and expects it back. Noise, a cut frame or a reset comes before some turns, and the
frame after it must come through. Only while a board starts are frames repeated.
"""

import argparse
import os
import random
import select
import shutil
import subprocess
import sys
import tty
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bridges.media.uart.codec import encode
from bus.embedded.buscoupler_node import Node, Uart
from bus.embedded.tokens import header
from bus.wire.frame import pack
from bus.wire.pattern import token
from tests.bus.embedded.cnode_support import SOURCE
from tests.bus.embedded.emulated import Emulated, Qemu

FOLDER = Path(__file__).with_name("firmware")
BARE = ("-ffreestanding", "-nostdlib", "-lgcc")
ARM = ("-Wl,--section-start=.start=0x0,-Ttext=0x100,-Tbss=0x20000000,--entry=main",)
RISCV = ("-Wl,--section-start=.start=0x80000000,-Ttext=0x80000100,-Tbss=0x80010000",)
M68K = (
    *("-static", "-no-pie", "-fno-pic", "-Wl,--build-id=none,--entry=_start"),
    "-Wl,--section-start=.start=0x10000,-Ttext=0x10100",
)
LEFT_OUT = ("CAN", "TCP", "I2C", "RS485", "TMQ", "ASK")
ECHO = {"names.h": header(["ping", "pong"])}
ANSWER_S = 10.0
STARTING_S = 0.2


class Core(NamedTuple):
    """A core: the compiler's prefix and flags, and the words of its emulator, QEMU or ours on libsimavr."""

    prefix: str
    flags: tuple[str, ...]
    emulator: tuple[str, ...]


CORES = {
    "Cortex-M0": Core(
        "arm-none-eabi",
        ("-mcpu=cortex-m0", "-mthumb", "-DMICROBIT", *BARE, *ARM),
        ("qemu-system-arm", "microbit"),
    ),
    "Cortex-M3": Core(
        "arm-none-eabi",
        ("-mcpu=cortex-m3", "-mthumb", "-DSTELLARIS", *BARE, *ARM),
        ("qemu-system-arm", "lm3s6965evb"),
    ),
    "RISC-V": Core(
        "riscv64-unknown-elf",
        ("-march=rv32imac", "-mabi=ilp32", *BARE, *RISCV),
        ("qemu-system-riscv32", "virt", "-bios", "none"),
    ),
    "68040, big-endian": Core("m68k-linux-gnu", ("-m68040", *BARE, *M68K), ("qemu-system-m68k", "virt")),
    "ATmega328P": Core("avr", ("-mmcu=atmega328p",), ()),
}


def missing(core: Core) -> str:
    """Return what is not installed that a core needs; empty if it can run."""
    needed = [f"{core.prefix}-gcc", *core.emulator[:1]]
    found = [name for name in needed if shutil.which(name) is None]
    if not core.emulator and not Path("/usr/include/simavr/sim_avr.h").exists():
        found.append("libsimavr-dev")
    return ", ".join(found)


@contextmanager
def board(core: Core, program: str = "echo.c", headers: Mapping[str, str] = ECHO) -> Iterator[Emulated]:
    """Build a program of `firmware/` for a core, with headers by name, and run it."""
    with TemporaryDirectory() as directory:
        firmware = _firmware(core, Path(directory), program, headers)
        running = _emulator(core, firmware)
        try:
            yield running
        finally:
            running.close()


def _firmware(core: Core, directory: Path, program: str, headers: Mapping[str, str]) -> Path:
    for name, text in headers.items():
        (directory / name).write_text(text)
    out = LEFT_OUT if program == "echo.c" else ("I2C", "RS485", "TMQ", "ASK")
    made, parts = directory / "firmware.elf", [f"-DBCN_{name}=0" for name in out]
    sources = [str(FOLDER / program), str(SOURCE)]
    folders = [f"-I{directory}", f"-I{SOURCE.parent}"]
    command = [f"{core.prefix}-gcc", "-Os", *folders, *parts, *sources, *core.flags, "-o", str(made)]
    subprocess.run(command, check=True)
    return made


def _emulator(core: Core, firmware: Path) -> Emulated:
    if core.emulator:
        program, machine, *words = core.emulator
        return Qemu(program, machine, *words, "-kernel", str(firmware))
    made = firmware.with_name("simavr_board")
    libraries = ["-lsimavr", "-lelf"]
    subprocess.run(["gcc", "-O2", str(FOLDER / "simavr_board.c"), *libraries, "-o", str(made)], check=True)
    return Emulated([str(made), str(firmware)])


class Line:
    """A serial device with MicroPython's methods, for the node in Python."""

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.descriptor)
        self.patience_s = ANSWER_S
        self.is_idle = False

    def read(self, size: int) -> bytes | None:
        """Return what comes within `patience_s`; if nothing does, the line `is_idle`."""
        self.is_idle = not select.select([self.descriptor], [], [], self.patience_s)[0]
        if self.is_idle:
            return None
        return os.read(self.descriptor, size)

    def write(self, data: bytes | bytearray) -> int:
        return os.write(self.descriptor, data)

    def close(self) -> None:
        os.close(self.descriptor)


class Dialogue:
    """The node in Python in a dialogue with a board. `counts` has frames, faults, and frames `lost`."""

    def __init__(self, running: Emulated, seed: int) -> None:
        self.running, self.chance = running, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.line = Line(running.path)
        self.node = Node(Uart(self.line, limit=128))
        self.heard: list[tuple[tuple[int, ...], bytes]] = []
        self.node.subscribe((), lambda names, data: self.heard.append((names, bytes(data))))

    def start(self) -> None:
        """Ask until the board answers. What it says late to earlier questions is read, too."""
        self.line.patience_s = STARTING_S
        for attempt in range(200):
            if self.ask(b"start" + bytes((attempt,))):
                self.line.patience_s = ANSWER_S
                return
        raise AssertionError("the board does not answer")

    def ask(self, data: bytes) -> bool:
        """Send a frame; return whether it came back."""
        wanted = ((token("pong"),), data)
        self.heard.clear()
        self.node.publish("ping", data)
        self.line.is_idle = False
        while wanted not in self.heard and not self.line.is_idle:
            self.node.poll()
        return wanted in self.heard

    def turn(self, number: int, resets: int) -> None:
        """Do one fault or none, and expect the next frame back. Every `resets`th turn is a reset."""
        if resets and number % resets == resets - 1:
            self.counts["resets"] += 1
            self.running.reset()
            self.start()
        else:
            self._disturb()
        data = number.to_bytes(4, "big") + self.chance.randbytes(self.chance.randrange(60))
        self.counts["frames"] += 1
        self.counts["lost"] += not self.ask(data)

    def _disturb(self) -> None:
        kind = self.chance.randrange(4)
        if kind == 0:
            self.counts["noise"] += 1
            self.line.write(self.chance.randbytes(self.chance.randrange(1, 200)))
        elif kind == 1:
            self.counts["cut"] += 1
            whole = encode(pack(1, [token("ping")], self.chance.randbytes(40)))
            self.line.write(whole[: self.chance.randrange(1, len(whole) - 1)])


def talk(core: Core, count: int, resets: int, seed: int = 1) -> Counter[str]:
    """Have a dialogue of `count` frames with a core, and return its counts."""
    with board(core) as running:
        dialogue = Dialogue(running, seed)
        try:
            dialogue.start()
            for number in range(count):
                dialogue.turn(number, resets)
        finally:
            dialogue.line.close()
    return dialogue.counts


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.bus.embedded.cores", description=__doc__)
    options.add_argument("--count", type=int, default=10_000, help="frames each way (10000)")
    options.add_argument("--resets", type=int, default=100, help="a reset every so many frames (100)")
    wanted = options.parse_args()
    lost = 0
    for name, core in CORES.items():
        counts = talk(core, wanted.count, wanted.resets)
        lost += counts["lost"]
        print(name, dict(counts), flush=True)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
