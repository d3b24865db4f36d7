"""The files of the virtual machine, as one archive that the kernel unpacks into memory when it boots.

The machine has no disk: its first file system is all that it has. Each file is at the path that it has on
this machine, with every link on the way to it.
"""

import compileall
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import BinaryIO

from tests.helpers import ROOT

REPOSITORY = ROOT
DISTRIBUTIONS = (
    *("buscoupler", "pytest", "pytest-asyncio", "pytest-timeout", "python-can", "smbus2"),
    *("pycyphal2", "pynng", "websockets", "h11", "prometheus-client", "msgpack", "PyYAML", "psutil"),
)
"""Distributions that run in the guest, with their requirements; those not installed are left out."""
_FOLDERS = (
    *("appliance", "benchmarks", "bridges", "bus", "buscoupler", "capture"),
    *("devices", "examples", "pipeline", "tests", "topologies"),
)
_UNUSED = re.compile(
    r"^(tests?|idlelib|lib2to3|ensurepip|distutils|tkinter|turtledemo|pydoc_data|site-packages|dist-packages"
    r"|config-.*|_tkinter\..*|_test.*\.so|_codecs_.*\.so)$"
)
"""Files and folders of the library that nothing in the machine needs: it unpacks all that it gets."""
_SUITES = ("tests/kernel/", "tests/conformance/")
"""Where the guest's tests are. Of other tests it gets what they share, but not themselves."""
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib64", "/etc/passwd", "/etc/group")
_ELF = b"\x7fELF"
_LIBRARY = re.compile(r"(/\S+) \(0x")
_HEADER = "070701" + "{:08x}" * 13


class Archive:
    """An archive as the kernel reads it at boot: cpio, "newc" (Linux: driver-api/early-userspace)."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._known: set[Path] = set()
        self._plain: set[Path] = set()  # those of them that no link is on the way to

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._entry("TRAILER!!!", 0, 0, b"")

    def add(self, path: Path) -> None:
        """Add a file, link or folder of this machine, without what is in it, and all that leads to it."""
        known = len(path.parts) - 1 if path.parent in self._plain else 1
        here = Path(*path.parts[:known])
        for number, part in enumerate(path.parts[known:], known + 1):
            here /= part
            is_new = here not in self._known
            self._known.add(here)
            if here.is_symlink():
                if is_new:
                    self._entry(str(here), stat.S_IFLNK | 0o777, 0, bytes(here.readlink()))
                target = (here.parent / here.readlink()).joinpath(*path.parts[number:])
                return self.add(_without_dots(target))
            self._plain.add(here)
            if is_new:
                found = here.stat()
                data = here.read_bytes() if stat.S_ISREG(found.st_mode) else b""
                self._entry(str(here), found.st_mode, int(found.st_mtime), data)
        return None

    def make(self, name: str, mode: int, data: bytes = b"") -> None:
        """Add what this machine has not, or not so."""
        self._known.add(Path(name))
        self._entry(name, mode, 0, data)

    def _entry(self, name: str, mode: int, mtime: int, data: bytes) -> None:
        number = len(self._known)
        encoded = name.lstrip("/").encode() + b"\0"
        fields = number, mode, 0, 0, 1, mtime, len(data), 0, 0, 0, 0, len(encoded), 0
        head = _HEADER.format(*fields).encode() + encoded
        self._file.write(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))


def _without_dots(path: Path) -> Path:
    """Resolve `..` in the target of a link. Debian and Python have none behind another link."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return Path(*parts)


def pack(file: BinaryIO, release: str, modules: Sequence[str], programs: Iterable[str], init: str) -> None:
    """Write an archive with `init` as its first program: Python, this repository, `programs` of this machine,
    and `modules` of the kernel `release`."""
    found = {*python_files(), *_modules(release, modules), *map(Path, programs)}
    with Archive(file) as archive:
        archive.make("/init", stat.S_IFREG | 0o755, init.encode())
        for name in ("/dev", "/proc", "/sys", "/tmp", "/run", "/root", "/mnt"):
            archive.make(name, stat.S_IFDIR | 0o755)
        for path in sorted({*found, *_libraries(found), *map(Path, _SYSTEM)}):
            archive.add(path)


@cache
def python_files() -> set[Path]:
    """Return this interpreter, its library, the packages of `DISTRIBUTIONS`, and this repository."""
    library = Path(sysconfig.get_path("stdlib"))
    environment = [*_plain(Path(sys.prefix) / "bin", "python*"), Path(sys.prefix) / "pyvenv.cfg"]
    return {
        *_tree(library, _UNUSED),
        *(Path(sys.executable).resolve(), *_shared_library(), *environment, *_packages(), *_sources()),
    }


def _shared_library() -> tuple[Path, ...]:
    name, folder = sysconfig.get_config_var("INSTSONAME"), sysconfig.get_config_var("LIBDIR")
    path = Path(str(folder)) / str(name)
    return (path.resolve(),) if path.suffix != ".a" and path.exists() else ()


def _modules(release: str, names: Sequence[str]) -> Iterator[Path]:
    """Return the files of kernel modules, of those that they need, and what modprobe finds them by."""
    folder = Path("/lib/modules") / release
    for pattern in ("modules.dep*", "modules.alias*", "modules.softdep", "modules.builtin*", "modules.order"):
        yield from folder.glob(pattern)
    modprobe = shutil.which("modprobe", path="/usr/sbin:/sbin") or "modprobe"
    for name in names:
        words = [modprobe, "-S", release, "--show-depends", name]
        lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
        yield from (Path(line.split()[1]) for line in lines if line.startswith("insmod"))


def _libraries(files: Iterable[Path]) -> set[Path]:
    """Return the shared libraries of all programs and libraries among `files`."""
    wanted = [path for path in files if path.suffix in ("", ".so") or ".so." in path.name]
    elves = [str(path) for path in wanted if path.is_file() and _begins(path) == _ELF]
    said = subprocess.run(["ldd", *elves], capture_output=True, text=True, check=False).stdout
    return {Path(name) for name in _LIBRARY.findall(said)}


def _begins(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_ELF))


def _plain(folder: Path, pattern: str) -> list[Path]:
    return [path for path in folder.glob(pattern) if path.is_file()]


def _tree(folder: Path, without: re.Pattern[str]) -> list[Path]:
    """Return the files below a folder that `without` does not name, and of byte code only the plain."""
    found: list[Path] = []
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not without.match(name)]
        found += [Path(here, name) for name in names if ".opt-" not in name and not without.match(name)]
    return [path for path in found if path.is_file()]


def _sources() -> list[Path]:
    """Return the files of this repository, with byte code: compiling is slow in the machine."""
    for folder in _FOLDERS:
        compileall.compile_dir(REPOSITORY / folder, quiet=2)
    files = [path for folder in _FOLDERS for path in (REPOSITORY / folder).rglob("*") if path.is_file()]
    return [*(path for path in files if not _is_other_test(path)), REPOSITORY / "pyproject.toml"]


def _is_other_test(path: Path) -> bool:
    """Tell whether a file is a test, or made from one, that does not run in the machine."""
    return path.name.startswith("test_") and not str(path.relative_to(REPOSITORY)).startswith(_SUITES)


def _packages() -> set[Path]:
    """Return the files of packages, with byte code that this makes where an installation left it out."""
    files: set[Path] = set()
    for package in _closure(DISTRIBUTIONS):
        for entry in package.files or ():
            path = Path(str(package.locate_file(entry)))
            if path.is_file() and ".." not in path.parts:
                if path.suffix == ".py":
                    compileall.compile_file(path, quiet=2)
                files.add(path)
                files.update(path.parent.glob(f"__pycache__/{path.stem}.*.pyc"))
    return files


def _closure(names: tuple[str, ...]) -> list[Distribution]:
    """Return the distributions of these names, and of their requirements, that are installed."""
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = re.split(r"[\s;<>=!~(\[]", waiting.pop(), maxsplit=1)[0].lower()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        waiting += [line for line in found[name].requires or () if "extra ==" not in line]
    return list(found.values())
