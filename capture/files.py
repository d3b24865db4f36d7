"""The files of a capture: their places and names, and whether they can be read.

    DIRECTORY/capture/date=YYYY-MM-DD/gateway=NAME/BOOT-FIRST_CAP_SEQ.parquet    capture files: finished
    DIRECTORY/capture/_names/NAME.txt                                            names of a gateway's tokens
    DIRECTORY/journal/gateway=NAME/BOOT-FIRST_CAP_SEQ.arrows                     journals: being written

Every writer takes its names from here, and every reader its files. `pyarrow` is imported when one is opened.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bus.errors import BusError
from bus.extras import lacking
from bus.text import whole_in
from capture.schema import DATE, GATEWAY, META_TOPOLOGY, META_VERSION, VERSION

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

CAPTURE: Final = "capture"
JOURNAL: Final = "journal"
NAMES: Final = "_names"  # Spark and pyarrow pass by names that begin so
DELTA_LOG: Final = "_delta_log"
FILE_SUFFIX: Final = ".parquet"
UNFINISHED_SUFFIX: Final = ".parquet.tmp"  # with a leading dot: Spark and pyarrow pass by such names
JOURNAL_SUFFIX: Final = ".arrows"


class CaptureError(BusError, ValueError):
    """A capture that cannot be read or written; the text says which file, and why."""


def name_of(boot: int, first_cap_seq: int) -> str:
    """Name a file, without suffix. Names sort by time within a gateway, and by number within a boot."""
    return f"{boot:020d}-{first_cap_seq:015d}"


def day_of(ts_ns: int) -> str:
    """Return the day of a time, `YYYY-MM-DD` in UTC."""
    return datetime.fromtimestamp(ts_ns // 10**9, UTC).strftime("%Y-%m-%d")


def capture_file(root: Path, date: str, gateway: str, name: str) -> Path:
    """Return the finished file `name` of a day (`YYYY-MM-DD`, UTC), under a recorder's directory `root`."""
    return root / CAPTURE / f"{DATE}={date}" / f"{GATEWAY}={gateway}" / f"{name}{FILE_SUFFIX}"


def journal_directory(root: Path, gateway: str) -> Path:
    """Return where a gateway's journals are, under a recorder's directory `root`."""
    return root / JOURNAL / f"{GATEWAY}={gateway}"


def journals_beside(days: Path) -> list[Path]:
    """List the journals of all gateways beside the days of a recorder's directory; none beside others."""
    found = (days.parent / JOURNAL).glob(f"{GATEWAY}=*/*{JOURNAL_SUFFIX}") if days.name == CAPTURE else ()
    return sorted(found)


def days_directory(root: Path) -> Path:
    """Return the directory of the days of finished files, under a recorder's directory `root`."""
    return root / CAPTURE


def names_directory(days: Path) -> Path:
    """Return where the names are, below the directory of the days."""
    return days / NAMES


def gateway_of(path: Path) -> str:
    """Return the gateway that a capture file's directory names."""
    return path.absolute().parent.name.removeprefix(f"{GATEWAY}=")


def boot_of(path: Path) -> str:
    """Return the run of a recorder that a file's name begins with."""
    return path.name.partition("-")[0]


def is_delta(directory: Path) -> bool:
    """Return whether a directory is a table with a Delta log, which says what is in it."""
    return (directory / DELTA_LOG).is_dir()


def listed(directory: Path) -> list[Path]:
    """List the capture files below `directory`, which may be none: by gateway, each in the order of time.

    If it is a Delta table, these are the files that its log names. Raises `CaptureError` if nobody can read
    that.
    """
    if is_delta(directory):
        paths: Iterable[Path] = (directory / name for name in logged(str(directory)))
    else:
        paths = directory.rglob(f"*{FILE_SUFFIX}")
    return sorted(filter(is_in_place, paths), key=lambda path: (gateway_of(path), path.name))


def logged(directory: str) -> dict[str, int]:
    """Return the files that the log of a Delta table names, relative to it, and their sizes in bytes. Raises
    `CaptureError`."""
    try:
        if "://" not in directory:
            log = Path(directory, DELTA_LOG)
            return _logged(directory, (log.stat().st_mtime_ns, len(os.listdir(log))))
        from capture.logged import sizes

        return sizes(directory)
    except ModuleNotFoundError as error:
        raise CaptureError(lacking(f"{directory}: its Delta log", error.name or "", "tables")) from None
    except ValueError as error:
        raise CaptureError(str(error)) from error


@lru_cache(maxsize=4)
def _logged(directory: str, state: tuple[int, int]) -> dict[str, int]:
    """Read the log of a table on this machine; once for each `state` of the log: its time and its entries."""
    from capture.logged import sizes

    return sizes(directory)


def foreign(directory: Path) -> list[Path]:
    """List the files below a directory of days that are none of a capture, and that readers pass by.

    Those that lie in a Delta table without being in it are its own affair, so they are not listed.
    """
    if is_delta(directory):
        return []
    ours = set(listed(directory))
    found = (path for path in sorted(directory.rglob("*")) if path not in ours and path.is_file())
    return [path for path in found if not any(part[0] in "._" for part in path.relative_to(directory).parts)]


def is_in_place(path: Path) -> bool:
    """Return whether a path is that of a capture file, by its directories."""
    *_, date, gateway, name = path.absolute().parts
    return date.startswith(f"{DATE}=") and gateway.startswith(f"{GATEWAY}=") and name[0] not in "._"


def finished(directory: Path) -> list[Path]:
    """List as `listed` does. Raises `CaptureError` if there is no file, or one that could not be seen."""
    if not directory.exists():
        raise CaptureError(f"{directory}: there is no such file or directory")
    if not directory.is_dir():
        raise CaptureError(f"{directory}: not a directory; give the recorder's, which holds {CAPTURE}/")
    _see(directory)
    found = listed(directory)
    if not found and any(directory.rglob(f"{GATEWAY}=*")):
        raise CaptureError(
            f"{directory}: no finished file yet; a recorder closes one a minute and at its end"
        )
    if not found:
        raise CaptureError(f"{directory}: no capture in it (no {DATE}=*/{GATEWAY}=*/*{FILE_SUFFIX})")
    return found


def _see(directory: Path) -> None:
    """Raise `CaptureError` if a directory cannot be listed: what is in it would be missing in silence."""

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # a recorder has just deleted it
            raise CaptureError(f"{error.filename}: cannot be listed: {error.strerror}")

    for _ in os.walk(directory, onerror=fail):
        pass


@contextmanager
def opened(path: Path) -> "Iterator[ParquetFile]":
    """Open a capture file and check its version. Raises `CaptureError`, and so does reading in the block.

    In a Delta table another program may have rewritten it, without our version (`is_ours`).
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CaptureError(f"{path}: not a file, as a capture has")
        with ParquetFile(path, page_checksum_verification=True) as file:
            if is_ours(file) or not is_delta(path.absolute().parents[2]):
                check_version(path, file.metadata.metadata or {})
            yield file
    except (OSError, ArrowException) as error:
        raise CaptureError(f"{path}: unreadable ({str(error).splitlines()[0][:120]})") from error


def is_ours(file: "ParquetFile") -> bool:
    """Return whether a file is of a recorder or of ours, not rewritten by another program: it has our
    version."""
    return META_VERSION.encode() in (file.metadata.metadata or {})


def topology_of(file: "ParquetFile") -> bytes | None:
    """Return the topology that a file was recorded under, as JSON; None if it has none."""
    found: bytes | None = (file.metadata.metadata or {}).get(META_TOPOLOGY.encode())
    return found


def check_version(path: Path | str, metadata: Mapping[bytes, bytes]) -> None:
    """Raise `CaptureError` if a file's metadata are none of a capture, or of a later version."""
    version = metadata.get(META_VERSION.encode(), b"").decode()
    number = whole_in(version, 1 << 32)
    if number is None:
        raise CaptureError(f"{path}: a Parquet file, but not of a capture")
    if number > VERSION:
        raise CaptureError(
            f"{path}: capture schema {version}, and this program reads up to {VERSION}: update buscoupler"
        )
