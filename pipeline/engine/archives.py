"""Class archives, with which Java starts in half the time: 180 MB for each Java and Spark.

Another path of an environment is another Spark, so who writes an archive removes those that were not used for
longest.
"""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from pipeline.engine.jars import cache_directory, needed
from pipeline.engine.java import Java

KEPT: Final = 4
"""The archives that stay: the new one, and those that were used last."""
_ABANDONED_S: Final = 86_400.0  # nobody writes an archive for so long


def archive(java: Java) -> Path:
    """Return the path of the class archive for this Java and this Spark, whether it has been made or not."""
    text = "\n".join([str(java.home), java.version, *map(_as_installed, needed())])
    return cache_directory() / f"spark-{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsa"


def _as_installed(jar: Path) -> str:
    """Return what Java compares a jar with: it refuses an archive of one that was installed before."""
    found = jar.stat()
    return f"{jar} {found.st_size} {found.st_mtime_ns}"


def in_use(java: Java) -> Path | None:
    """Return the class archive for a start now, and note that it is used; None if none has been made."""
    made = archive(java)
    if not made.exists():
        return None
    with suppress(OSError):  # it is not ours, or the place can only be read
        os.utime(made)
    return made


def begun(target: Path) -> Path:
    """Return the path of a file beside an archive that nobody else writes: what Java writes, for `store`."""
    return target.with_suffix(f".{token_hex(6)}.tmp")


def store(written: Path, target: Path) -> None:
    """Put a written archive at its place, and remove the oldest ones. Raises `OSError` if it has none there.

    A Java that uses a removed one goes on.
    """
    written.replace(target)
    os.utime(target)
    found = sorted(target.parent.glob("spark-*.jsa"), key=_used_s, reverse=True)
    others = [one for one in found if one != target]
    abandoned = [
        one for one in target.parent.glob("spark-*.tmp") if time.time() - _used_s(one) > _ABANDONED_S
    ]
    for one in (*others[KEPT - 1 :], *abandoned):
        with suppress(OSError):
            one.unlink()


def _used_s(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # another process has removed it
        return 0.0
