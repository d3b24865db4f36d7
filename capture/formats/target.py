"""Files that are written: packed if their names say so. `.gz` needs nothing, `.zst` pyarrow."""

import gzip
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from bus.extras import absent
from bus.machine.files import whole
from bus.needs import Library
from capture.files import CaptureError

_PACKER: Final = Library("pyarrow", "pyarrow", "capture")


@contextmanager
def written(target: str, seeks: bool = False, live: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing (`-`: the standard output), which is packed if its name says so; one that
    `seeks` is made aside first, where it must be. It is whole, or not there, unless it is read `live`.
    Raises `OSError`, and `CaptureError` without pyarrow."""
    suffix = target.lower()[-4:]
    packed = suffix.endswith(".gz") or suffix == ".zst"
    if suffix == ".zst" and (words := absent(target, _PACKER)):  # before the file is opened
        raise CaptureError(words)
    with ExitStack() as stack:
        plain = sys.stdout.buffer if target == "-" else stack.enter_context(_opened(target, live))
        file: BinaryIO = plain
        if suffix.endswith(".gz"):
            file = stack.enter_context(gzip.GzipFile("", "wb", 6, plain, 0))  # type: ignore[assignment]
        elif packed:
            file = stack.enter_context(_zstd(plain))
        if not seeks or (target != "-" and not packed):
            yield file
        else:
            aside = stack.enter_context(TemporaryFile())
            yield aside
            aside.seek(0)
            shutil.copyfileobj(aside, file)
        if target == "-":
            file.flush()


def _opened(target: str, live: bool) -> AbstractContextManager[BinaryIO]:
    return Path(target).open("wb") if live else whole(target)


def _zstd(plain: BinaryIO) -> BinaryIO:
    import pyarrow as pa

    file: BinaryIO = pa.CompressedOutputStream(plain, "zstd")
    return file


def check_apart(source: str | os.PathLike[str], target: str) -> None:
    """Raise `CaptureError` if a file would be written over what it is made of."""
    try:
        is_same = os.path.samefile(source, target)
    except OSError:  # one of them is not there, or is the standard input or output
        return
    if is_same:
        raise CaptureError(f"{target}: is the file that is read: give another name for what is written")
