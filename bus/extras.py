"""Lines that a user can type: how this program was started, and how to install what it lacks.

An extra is a set of packages of this distribution: `buscoupler[sail]`.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "buscoupler"


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


def lacking(what: str, package: str, extra: str) -> str:
    """Return the text that `what` needs a package, with the command that installs it."""
    return f"{what} needs {package}: run {install(extra)}"


def typed(path: str) -> str:
    """Shorten the path of a program: to its name if the PATH leads there, or to a path from here."""
    import shutil  # late: it loads three packers, and a gateway needs none

    whole = os.path.abspath(path)
    if shutil.which(Path(whole).name) == whole:
        return Path(whole).name
    here = os.path.relpath(whole)
    return shlex.quote(whole if here.startswith(os.pardir) else here)
