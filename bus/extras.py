"""Lines that a user can type: how this program was started, and how to install what it lacks.

An extra is a set of packages of this distribution: `buscoupler[sail]`.
"""

import os
import shlex
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from bus.errors import LinkError
from bus.needs import Library, Need

DISTRIBUTION: Final = "buscoupler"

LIBRARIES: Final = {
    "can": ("python-can", "can"),
    "cantools": ("cantools", "dbc"),
    "cryptography": ("cryptography", "cert"),
    "deltalake": ("deltalake", "tables"),
    "grpc": ("grpcio", "connect"),
    "lark": ("lark", "syndication"),
    "mcap": ("mcap", "mcap"),
    "msgpack": ("msgpack", "syndication"),
    "numpy": ("numpy", "capture"),
    "pandas": ("pandas", "pipeline"),
    "psutil": ("psutil", "demo"),
    "py4j": ("py4j", "pipeline"),
    "pyarrow": ("pyarrow", "capture"),
    "pysail": ("pysail", "sail"),
    "pyspark": ("pyspark", "pipeline"),
    "re2": ("google-re2", "lines"),
    "rich": ("rich", "demo"),
    "scapy": ("scapy", "scapy"),
    "serial": ("pyserial", "uart"),
    "smbus2": ("smbus2", "i2c"),
}
"""The modules that only an extra brings: the package of each, and an extra that has it. Several may: what
knows for what it needs a module names the best one itself."""


def program() -> str:
    """Return this program's command as a user can type it: `buscoupler`, or `python -m buscoupler`."""
    name = Path(sys.argv[0]).name
    if name == DISTRIBUTION:
        return typed(sys.argv[0])
    return f"{typed(sys.executable)} -m {DISTRIBUTION}"


def install(extra: str) -> str:
    """Return the command that installs an extra into this program's environment; "" stands for no extra."""
    return f"{pip()} install '{DISTRIBUTION}[{extra}]'" if extra else f"{pip()} install {DISTRIBUTION}"


def pip() -> str:
    """Return the command that is pip of this program's environment."""
    found = Path(sys.executable).with_name("pip")
    return "pip" if typed(str(found)) == "pip" else f"{typed(sys.executable)} -m pip"


def unmet(what: str, error: ImportError) -> str:
    """Return the text that `what` needs the package of a module that could not be imported. Raises `error`
    again if no extra has it: our defect."""
    library = LIBRARIES.get((error.name or "").partition(".")[0])
    if library is None:
        raise error
    return lacking(what, *library)


def lacking(what: str, package: str, extra: str) -> str:
    """Return the text that `what` needs a package, with the command that installs it."""
    return f"{what} needs {package}: run {install(extra)}"


def absent(what: str, library: Library) -> str:
    """Return the text that `what` needs a library; "" if it is installed. Nothing is imported."""
    return lacking(what, library.package, library.extra) if find_spec(library.module) is None else ""


def check(what: str, needs: Iterable[Need]) -> None:
    """Raise `LinkError` for the first library among the needs of `what` that is not installed."""
    for need in needs:
        if isinstance(need, Library) and (words := absent(what, need)):
            raise LinkError(words)


def typed(path: str) -> str:
    """Shorten the path of a program: to its name if the PATH leads there, or to a path from here."""
    import shutil  # late: it loads three packers, and a gateway needs none

    whole = os.path.abspath(path)
    if shutil.which(Path(whole).name) == whole:
        return Path(whole).name
    here = os.path.relpath(whole)
    return shlex.quote(whole if here.startswith(os.pardir) else here)
