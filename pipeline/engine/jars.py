"""Spark's jars: where they are, which ones a session of ours needs, and copies that Java can archive.

Java looks into each jar of the class path when it searches for services, which takes longer than to start: a
third of the jars are for Hive, machine learning, Kubernetes and YARN. And it never archives classes of signed
jars: those of the compiler of generated code would be read, checked and verified at each start.
"""

import os
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

from bus.extras import install, lacking, pip
from bus.machine.partial import replacing
from pipeline.errors import PipelineError

_MANAGERS: Final = ("kubernetes", "spark-kubernetes", "spark-yarn", "vertx", "volcano")
_UNUSED: Final = (
    "JTransforms", "algebra", "arpack", "blas", "breeze", "cats", "connect-repl", "datanucleus", "derby",
    "hive-beeline", "hive-cli", "hive-common", "hive-exec", "hive-jdbc", "hive-metastore", "hive-serde",
    "hive-service", "hive-shims", "hk2", "jersey", "lapack", "scala-compiler", "spark-graphx", "spark-hive",
    "spark-mllib", "spark-repl", "spire",
)  # fmt: skip
_FIRST: Final = ("spark-", "scala-library", "hadoop-client-api")
_SIGNED: Final = ("janino", "commons-compiler")
_SIGNATURES: Final = {".SF", ".RSA", ".DSA", ".EC"}


def cache_directory() -> Path:
    """Return the directory of archives and copies: $XDG_CACHE_HOME/buscoupler."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "buscoupler"


def spark_home() -> Path:
    """Find the installed pyspark without importing it. Raises ModuleNotFoundError, which names the extra."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("no pyspark", name="pyspark")
    return Path(spec.origin).parent


def installed() -> bool:
    """Return whether Spark is installed: pyspark with its jars, not a client alone."""
    try:
        return (spark_home() / "jars").is_dir()
    except ModuleNotFoundError:
        return False


def clash() -> str:
    """Say in one line that pyspark and its client are installed over each other; "" if they are not.

    Both have the files of one package, of two versions then: which of them a module is of, is chance.
    """
    found = {name: _version(name) for name in ("pyspark", "pyspark-client")}
    if len({*found.values()}) < 2 or not all(found.values()):
        return ""
    named = " and ".join(f"{name} {version}" for name, version in found.items())
    return (
        f"{named} are installed over each other: run {pip()} uninstall -y pyspark pyspark-client, "
        f"and then {install('engines')}"
    )


def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def needed(managed: bool = False) -> Iterator[Path]:
    """List the jars of a session, in order. One that is `managed` by YARN or Kubernetes needs their clients
    too.

    Java looks for a class in one jar after the other: those that most classes are from come first.
    """
    left_out = _UNUSED if managed else _UNUSED + _MANAGERS
    every = sorted(
        (spark_home() / "jars").glob("*.jar"), key=lambda jar: (not jar.name.startswith(_FIRST), jar.name)
    )
    return (jar for jar in every if not jar.name.startswith(left_out))


def class_path(managed: bool = False) -> str:
    """Make the argument of `java -cp`: the jars `needed`, with our copies of signed ones if `unsign` has made
    them.

    Raises `PipelineError` if pyspark is a client alone.
    """
    copies = [(cache_directory() / "jars" / jar.name, jar) for jar in needed(managed)]
    if not copies:
        raise PipelineError(
            "the installed pyspark is a client alone; " + lacking("this job", "Spark", "engines")
        )
    return os.pathsep.join(str(copy if copy.exists() else jar) for copy, jar in copies)


def unsign() -> None:
    """Copy the signed jars into the cache without their signatures, once. Raises `OSError`."""
    directory = cache_directory() / "jars"
    directory.mkdir(parents=True, exist_ok=True)
    for jar in needed():
        if jar.name.startswith(_SIGNED) and not (directory / jar.name).exists():
            with replacing(directory / jar.name) as aside:
                _copy(jar, aside)


def _copy(jar: Path, target: Path) -> None:
    with zipfile.ZipFile(jar) as signed, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as plain:
        for entry in signed.infolist():
            path = PurePosixPath(entry.filename)
            if path.parent.name != "META-INF" or path.suffix not in _SIGNATURES:
                plain.writestr(entry, signed.read(entry))
