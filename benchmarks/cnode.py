"""Sizes of the node in C on the cores that Debian has compilers for, and what checkers say of its source.

Prints `core | what | flash B | RAM B`. The exit status is 1 above a bound, and if a checker complains.
Flash: code and constants of the node, linked with the compiler's own library, without a program
and without the `memcpy` of a C library. RAM: an
instance and the deepest stack of a call (`-fstack-usage`), without the caller's buffers and callbacks.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from benchmarks.command import DOCS, Command
from benchmarks.sections import write

SOURCE: Final = Path(__file__).parent.parent / "bus" / "embedded" / "c" / "buscoupler_node.c"
STRICT: Final = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
MACROS: Final = ("UART", "RS485", "CAN", "CAN_FD", "TCP", "I2C", "TMQ", "ASK")


class Core(NamedTuple):
    """A core: its compiler's prefix and flags, and how many bytes a call itself puts on the stack."""

    name: str
    prefix: str
    flags: tuple[str, ...]
    call: int = 0


class Part(NamedTuple):
    """A part that is measured: the struct of its link, the macros that are 1, and if it only publishes."""

    name: str
    struct: str
    macros: tuple[str, ...]
    publish_only: bool = False


class Size(NamedTuple):
    """A row of the table; sizes in bytes."""

    core: Core
    part: Part
    flash: int
    ram: int


CORES: Final = (
    Core("Cortex-M0", "arm-none-eabi", ("-mcpu=cortex-m0", "-mthumb")),
    Core("ATmega328P", "avr", ("-mmcu=atmega328p",), call=2),
    Core("RISC-V (rv32imac)", "riscv64-unknown-elf", ("-march=rv32imac", "-mabi=ilp32")),
)
PARTS: Final = (
    Part("UART", "uart", ("UART",)),
    Part("UART, publish only", "uart", ("UART",), publish_only=True),
    Part("RS-485", "rs485", ("UART", "RS485")),
    Part("CAN", "can", ("CAN",)),
    Part("CAN FD", "can", ("CAN", "CAN_FD")),
    Part("CAN, publish only", "can", ("CAN",), publish_only=True),
    Part("TCP", "tcp", ("TCP",)),
    Part("I2C", "i2c", ("I2C",)),
    Part("TMQ", "tmq", ("TMQ",)),
    Part("UART and questions", "uart", ("UART", "ASK")),
)
FLASH_MAX: Final = {
    ("Cortex-M0", "UART"): 1536,
    ("Cortex-M0", "UART, publish only"): 768,
    ("Cortex-M0", "CAN"): 3072,
    ("Cortex-M0", "CAN FD"): 3072,
    ("Cortex-M0", "CAN, publish only"): 1536,
    ("ATmega328P", "UART"): 2048,
    ("ATmega328P", "UART, publish only"): 1024,
    ("RISC-V (rv32imac)", "UART"): 2048,
    ("RISC-V (rv32imac)", "UART, publish only"): 1024,
}
"""The bounds of flash, in bytes, by core and part."""
RAM_MAX: Final = {("Cortex-M0", "UART"): 300, ("Cortex-M0", "UART, publish only"): 150}
"""The bounds of RAM, in bytes, by core and part."""
CHECKERS: Final = (
    ("clang", *STRICT, "-Weverything", "-Wno-padded", "-fsyntax-only"),
    ("clang++", "-xc++", "-std=c++11", *STRICT[1:], "-fsyntax-only"),
    (
        "clang-tidy",
        "--quiet",
        "--warnings-as-errors=*",
        "--checks=-*,bugprone-*,cert-*,clang-analyzer-*,misc-*,performance-*,portability-*,"
        "-bugprone-easily-swappable-parameters",
    ),
)
"""Commands that must find nothing; the source is their last argument."""
CPPCHECK: Final = (
    *("cppcheck", "--enable=warning,style,performance,portability", "--addon=misra", "--std=c99", "-q"),
    "--template={severity} {id}: {file}:{line}: {message}",
)
"""The command that must find nothing but deviations and information; the source is its last argument."""
DEVIATIONS: Final = {
    *("2.4", "8.7", "8.9", "10.6", "10.8", "11.5", "12.1", "12.3"),
    *("13.3", "13.4", "15.5", "17.8", "18.4", "20.5", "20.7"),
}
"""The rules of MISRA C:2012 that the source breaks on purpose; none is mandatory."""
_RULE: Final = re.compile(r"^\w+ misra-c2012-([\d.]+):", re.MULTILINE)
_EDGE: Final = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')


def measure(core: Core, part: Part, directory: Path) -> Size:
    """Build a part for a core in `directory`, and return its sizes.

    Raises CalledProcessError for a warning, and FileNotFoundError without the compiler.
    """
    instance, made = directory / "instance.c", directory / "node.elf"
    instance.write_text(f'#include "buscoupler_node.h"\nstruct bcn_{part.struct} instance;\n')
    flags = [*core.flags, *STRICT, *macros(part), "-Os", "-ffreestanding", "-fstack-usage"]
    link = [
        "-nostdlib",
        "-Wl,-e,0,--defsym,memcpy=0",
        f"-I{SOURCE.parent}",
        str(SOURCE),
        str(instance),
        "-lgcc",
    ]
    subprocess.run([f"{core.prefix}-gcc", *flags, *link, "-o", str(made)], check=True, cwd=directory)
    sizes = subprocess.check_output([f"{core.prefix}-size", str(made)], text=True).splitlines()[1].split()
    code, constants, zeros = map(int, sizes[:3])
    stack = deepest(frames(next(directory.glob("*buscoupler_node.su")).read_text()), calls(part), core.call)
    return Size(core, part, code + constants, constants + zeros + stack)


def macros(part: Part) -> list[str]:
    """Return the compiler's options that choose a part."""
    receive = f"-DBCN_RECEIVE={int(not part.publish_only)}"
    return [receive, *(f"-DBCN_{name}={int(name in part.macros)}" for name in MACROS)]


def frames(report: str) -> dict[str, int]:
    """Return the stack of each function, in bytes, from GCC's report. Clones of a function count as that."""
    found: dict[str, int] = {}
    for line in report.splitlines():
        place, size = line.split("\t")[:2]
        name = place.split(":")[-1].split(".")[0]
        found[name] = max(found.get(name, 0), int(size))
    return found


@cache
def calls(part: Part) -> dict[str, list[str]]:
    """Return which functions each function calls, without those called by pointer.

    This machine's compiler tells it, before any function is put into another: that of AVR cannot.
    """
    with TemporaryDirectory() as made:
        command = ["gcc", "-O0", "-fcallgraph-info", *macros(part), "-c", str(SOURCE), "-o", "node.o"]
        subprocess.run(command, check=True, cwd=made)
        graph = (Path(made) / "node.ci").read_text()
    found: dict[str, list[str]] = {}
    for caller, called in _EDGE.findall(graph):
        found.setdefault(caller.split(":")[-1], []).append(called.split(":")[-1])
    return found


def deepest(own: Mapping[str, int], calls: Mapping[str, Sequence[str]], call: int) -> int:
    """Return the deepest stack, in bytes. A function without a stack of `own` is part of its callers."""

    def depth(name: str) -> int:
        below = max(map(depth, calls.get(name, ())), default=0)
        return below + (own[name] + call if name in own else 0)

    return max(map(depth, own), default=0)


def measured(cores: Sequence[Core], parts: Sequence[Part]) -> Iterator[Size]:
    """Measure each part on each core."""
    for core in cores:
        for part in parts:
            with TemporaryDirectory() as made:
                yield measure(core, part, Path(made))


def faults(sizes: Sequence[Size]) -> list[str]:
    """Return a line for each size above its bound."""
    found = []
    for size in sizes:
        key = size.core.name, size.part.name
        for what, value, most in (("flash", size.flash, FLASH_MAX), ("RAM", size.ram, RAM_MAX)):
            if value > most.get(key, value):
                found.append(f"{key[0]}, {key[1]}: {value} B of {what}, at most {most[key]}")
    return found


def table(sizes: Sequence[Size]) -> str:
    """Return the table of the page, with bounds."""
    rows = ["| core | what | flash B | RAM B |", "|---|---|---|---|"]
    for size in sizes:
        key = size.core.name, size.part.name
        flash, ram = _cell(size.flash, FLASH_MAX.get(key)), _cell(size.ram, RAM_MAX.get(key))
        rows.append(f"| {key[0]} | {key[1]} | {flash} | {ram} |")
    return "\n".join(rows)


def _cell(value: int, most: int | None) -> str:
    return str(value) if most is None else f"{value} of {most}"


def complaints() -> list[str]:
    """Return what the checkers say of the source."""
    found = []
    for command in CHECKERS:
        last = [str(SOURCE), *(["--", STRICT[0]] if command[0] == "clang-tidy" else [])]
        done = subprocess.run([*command, *last], capture_output=True, text=True)
        if done.returncode:
            found.append(f"{command[0]}: {(done.stdout + done.stderr).strip()}")
    return found + checked(SOURCE)


def checked(source: Path) -> list[str]:
    """Return what cppcheck says of a source, and which rules of MISRA C:2012 this breaks that are no
    deviations, as far as cppcheck's addon knows them. Both come of one analysis, which takes seconds."""
    done = subprocess.run([*CPPCHECK, str(source)], capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line and not _RULE.match(line)]
    found = [f"cppcheck: {line}" for line in lines if not line.startswith("information ")]
    broken = sorted({*_RULE.findall(done.stderr)} - DEVIATIONS)
    return found + [f"MISRA C:2012, rule {rule}: not among the deviations" for rule in broken]


def main() -> int:
    options = Command("benchmarks.cnode", __doc__)
    options.add_argument("--write", action="store_true", help="write the table to docs/microcontroller.md")
    wanted = options.parse_args()
    sizes = list(measured(CORES, PARTS))
    print(table(sizes))
    if wanted.write:
        write("cnode", "benchmarks.cnode --write", table(sizes), DOCS / "microcontroller.md")
    wrong = faults(sizes) + complaints()
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
