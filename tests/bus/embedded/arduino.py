"""Sketches built for an Arduino Uno with Debian's core and compiler."""

import shutil
import subprocess
from pathlib import Path

from tests.bus.embedded.cnode_support import SOURCE

AVR = Path("/usr/share/arduino/hardware/arduino/avr")
MISSING = " and ".join(
    name
    for name, is_there in (
        ("gcc-avr", shutil.which("avr-gcc") is not None),
        ("arduino-core-avr", AVR.exists()),
    )
    if not is_there
)
"""The needed Debian packages that are not installed."""
FLAGS = [
    *("-mmcu=atmega328p", "-Os", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"),
    *("-DF_CPU=16000000L", "-DARDUINO=10819", "-DARDUINO_AVR_UNO", "-DARDUINO_ARCH_AVR"),
    "-DDECIMAL_DIG=__DECIMAL_DIG__",  # the compiler is older than the core, which uses this name
    *(f"-I{folder}" for folder in (AVR / "cores/arduino", AVR / "variants/standard", SOURCE.parent)),
]
CPLUSPLUS = ["-std=gnu++11", "-fno-exceptions", "-fno-threadsafe-statics", "-fpermissive", "-w"]


def sketch(path: Path, directory: Path) -> Path:
    """Build a sketch with the node in `directory`, and return its ELF file. Raises CalledProcessError."""
    own = [*CPLUSPLUS[:3], "-Wall", "-Wextra", "-Werror", "-include", "Arduino.h", "-xc++"]
    subprocess.run(["avr-g++", *FLAGS, *own, "-c", str(path), "-o", "sketch.o"], check=True, cwd=directory)
    core = AVR / "cores/arduino"
    sources = [str(SOURCE), *map(str, sorted(core.glob("*.c")))]
    subprocess.run(["avr-gcc", *FLAGS, "-std=gnu11", "-w", "-c", *sources], check=True, cwd=directory)
    sources = [str(found) for found in sorted(core.glob("*.cpp"))]
    subprocess.run(["avr-g++", *FLAGS, *CPLUSPLUS, "-c", *sources], check=True, cwd=directory)
    made = directory / "sketch.elf"
    objects = [str(found) for found in sorted(directory.glob("*.o"))]
    subprocess.run(["avr-g++", *FLAGS, *objects, "-lm", "-o", str(made)], check=True)
    return made
