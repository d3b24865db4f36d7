"""Files of text that users write: read whole, within a bound, and as UTF-8 from any editor.

A mark of the byte order, which Windows puts before text, is no part of it. Text in another encoding is
refused with the place and what to do. A file that the topology names is a regular one, for a pipe would let
the process wait. And files that are written at once and whole, and `is_at`, of files that are open for long.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from bus.errors import BusError
from bus.machine.partial import partial_of, replacing
from bus.machine.touch import touching
from bus.text import MARK
from bus.wire.pem import CERTIFICATE, fault

TEXT_BYTES: Final = 1 << 20
PEM_BYTES: Final = 16 << 20
_KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_SAVE: Final = "save it as UTF-8"
_OTHER_MARKS: Final = {
    b"\xff\xfe\x00\x00": "UTF-32", b"\x00\x00\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"
}  # fmt: skip


class NotRegular(OSError):
    """A path that leads to something else than a regular file."""


class NoText(BusError, ValueError):
    """Bytes that are no text in UTF-8. `line` is the line of the first fault, from 1."""

    def __init__(self, line: int, words: str) -> None:
        super().__init__(words)
        self.line = line


def read_text(path: str | Path, most_bytes: int = TEXT_BYTES) -> str:
    """Return the text of a regular file.

    Raises `OSError`, or ValueError for a longer file and for what is no text.
    """
    return text_of(read_bytes(path, most_bytes))


def read_bytes(path: str | Path, most_bytes: int = TEXT_BYTES) -> bytes:
    """Return the bytes of a regular file. Raises `OSError`, or ValueError for a longer file."""
    with touching(str(path)), open(path, "rb", opener=_regular) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"it has more than {most_bytes} bytes")
    return data


def _regular(path: str, flags: int) -> int:
    """Open a regular file, also if a pipe without a writer stands there. Raises `OSError` for others.

    These are not opened: a device may begin to do something.
    """
    _check_kind(os.stat(path).st_mode)
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _check_kind(os.fstat(fd).st_mode)
    except OSError:
        os.close(fd)
        raise
    return fd


def check_regular(path: str | Path) -> None:
    """Raise `NotRegular` for a pipe, a directory or a device, and any other `OSError` of a look at it."""
    with touching(str(path)):
        _check_kind(os.stat(path).st_mode)


def _check_kind(mode: int) -> None:
    kind = stat.S_IFMT(mode)
    if kind != stat.S_IFREG:
        raise NotRegular(f"it is no regular file, but {_KINDS.get(kind, 'something else')}")


def text_of(data: bytes) -> str:
    """Return the text in the bytes of a whole file. Raises `NoText`."""
    check_encoding(data)
    try:
        text = data.removeprefix(MARK).decode()
    except UnicodeDecodeError as error:
        line = data.removeprefix(MARK)[: error.start].count(b"\n") + 1
        raise NoText(line, f"not UTF-8 text: {_SAVE}") from None
    if "\0" in text:
        raise NoText(text[: text.index("\0")].count("\n") + 1, f"unprintable character #x0000: {_SAVE}")
    return text


def check_encoding(data: bytes) -> None:
    """Raise `NoText` if the first bytes of a text announce another encoding than UTF-8."""
    if found := encoding_of(data):
        raise NoText(1, f"not UTF-8 text but {found}: {_SAVE}")


def encoding_of(data: bytes) -> str:
    """Return the encoding other than UTF-8 that the first bytes of a text announce; "" if they do not."""
    return next((name for mark, name in _OTHER_MARKS.items() if data.startswith(mark)), "")


def pem(path: str, holds: str = CERTIFICATE) -> str:
    """Return the path of a file of certificates or keys that OpenSSL reads as it is meant.

    OpenSSL passes over a first certificate behind a mark of the byte order, waits for a pipe, and does not
    say which file is cut off. Raises `OSError` or ValueError for such a file.
    """
    data = read_bytes(path, PEM_BYTES)
    if found := encoding_of(data):
        raise ValueError(f"{path} is {found}, and PEM is ASCII text")
    if data.startswith(MARK):
        raise ValueError(f"{path} begins with a byte order mark: save it as UTF-8 without BOM")
    if found := fault(data, holds):
        raise ValueError(f"{path} {found}")
    return path


def unfit_pem(files: Iterable[tuple[str, str]]) -> str:
    """Return why the first of some files, each with what it holds, is not as `pem` wants it; "" if all are.

    One that cannot be read ends the look: who opens it says why.
    """
    try:
        for path, holds in files:
            pem(path, holds)
    except ValueError as error:
        return str(error)
    except OSError:
        pass
    return ""


def replace_bytes(path: str | Path, data: bytes) -> None:
    """Write a file at once, with the permissions of the old one: a reader gets all of one or of the other.

    Raises `OSError`.
    """
    with _naming(path):
        real = Path(path).resolve()
        with replacing(real) as partial:
            _write_exclusively(partial, data, stat.S_IMODE(real.stat().st_mode))


def write_new(path: str | Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file that is not there yet, at once and whole.

    A disk without hard links, such as a stick with FAT, gets the file in place: a crash may leave a
    piece. Raises `FileExistsError` if it is there, and `OSError`.
    """
    if not Path(path).name:  # `.` or `/`
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    partial = partial_of(Path(path))
    with _naming(path):
        try:
            _write_exclusively(partial, data, mode)
            os.link(partial, path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK) or not partial.exists():
                raise
            _write_exclusively(Path(path), data, mode)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def whole(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing that is at `path` once the block has ended without an error: a full disk leaves
    no part of it, and what was there. That gives its permissions too.

    A pipe or a device is written in place, and so is a file whose directory takes no other. Raises `OSError`.
    """
    real, mode = Path(path).resolve(), _mode(path)
    aside = partial_of(real)
    file = None if mode is not None and not stat.S_ISREG(mode) else _beside(aside, path, mode)
    if file is None:
        with open(real, "wb") as in_place:
            yield in_place
        return
    try:
        with file:
            yield file
        with _naming(path):
            aside.replace(real)
    finally:
        aside.unlink(missing_ok=True)


def _mode(path: str | Path) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _beside(aside: Path, path: str | Path, mode: int | None) -> BinaryIO | None:
    """Open a file with the permissions of that at `path`; None if it can only be written in place."""
    with _naming(path):
        try:
            file = open(aside, "xb")  # noqa: SIM115 (its caller closes it)
        except PermissionError:
            if mode is None:
                raise
            return None
        if mode is not None:
            os.fchmod(file.fileno(), stat.S_IMODE(mode))
        return file


def is_at(descriptor: int, path: str | Path) -> bool:
    """Return whether a path still is that of an open file or directory: nobody deleted, moved or replaced it.

    Raises `OSError` if nobody can say.
    """
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return False


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """Let errors name this file, and not the one that is written first and then takes its place."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def _write_exclusively(path: Path, data: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
        os.fsync(file.fileno())
