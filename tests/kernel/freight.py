"""The files that Python needs in the virtual machine, as one archive.

The guest can read this machine's files over 9p, but each access costs a round trip, and an import needs
hundreds: pytest would take half a minute to start. One archive, unpacked into the guest's memory and mounted
over the same paths, takes a few seconds.
"""

import compileall
import re
import sys
import sysconfig
import tarfile
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

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
    r"^(test|idlelib|lib2to3|ensurepip|tkinter|turtledemo|pydoc_data|site-packages|dist-packages|config-.*)$"
)


@dataclass(frozen=True)
class Freight:
    """An archive: `files` are absolute paths; the guest mounts each of `mounts` over its path, in order."""

    files: tuple[Path, ...]
    mounts: tuple[Path, ...]

    def pack(self, archive: Path) -> None:
        """Write the archive. Names in it are the absolute paths without the first slash."""
        with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
            for path in self.files:
                tar.add(path, recursive=False)


def python_files() -> Freight:
    """Return this interpreter, its library, the packages of `DISTRIBUTIONS`, and this repository."""
    library = Path(sysconfig.get_path("stdlib"))
    interpreter = Path(sys.executable).resolve()
    shared = _shared_library()
    environment = [*_plain(Path(sys.prefix) / "bin", "python*"), Path(sys.prefix) / "pyvenv.cfg"]
    files = {
        *_tree(library, _UNUSED),
        *(interpreter, *shared, *environment, *_packages(), *_sources()),
    }
    mounts = (library, interpreter, *shared, REPOSITORY, Path(sys.prefix))
    return Freight(tuple(sorted(files)), mounts)


def _shared_library() -> tuple[Path, ...]:
    name, folder = sysconfig.get_config_var("INSTSONAME"), sysconfig.get_config_var("LIBDIR")
    path = Path(str(folder)) / str(name)
    return (path.resolve(),) if path.suffix != ".a" and path.exists() else ()


def _plain(folder: Path, pattern: str) -> list[Path]:
    return [path for path in folder.glob(pattern) if path.is_file()]


def _tree(folder: Path, without: re.Pattern[str]) -> list[Path]:
    tops = [path for path in folder.iterdir() if not without.match(path.name)]
    return [
        path for top in tops for path in (top, *top.rglob("*")) if path.is_file() and ".opt-" not in path.name
    ]


def _sources() -> list[Path]:
    """Return the files of this repository, with byte code: compiling is slow in the machine."""
    for folder in _FOLDERS:
        compileall.compile_dir(REPOSITORY / folder, quiet=2)
    files = [path for folder in _FOLDERS for path in (REPOSITORY / folder).rglob("*") if path.is_file()]
    return [*files, REPOSITORY / "pyproject.toml"]


def _packages() -> set[Path]:
    files: set[Path] = set()
    for package in _closure(DISTRIBUTIONS):
        for entry in package.files or ():
            path = Path(str(package.locate_file(entry)))
            if path.is_file() and ".." not in path.parts:
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
