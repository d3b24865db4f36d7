"""Permissions of files: of new ones, of directories that this program trusts, and of files with secrets."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bus.machine.partial import replacing
from bus.machine.touch import touching

DENIED: Final = 0o027
"""Permissions that no new file or directory has, and no file with a secret: 0640 and 0750 are left."""
WRITABLE: Final = 0o022
"""Permissions by which other users could change the contents of a directory."""
_OURS: Final = 0o077
"""The umask while that of before is asked for: a thread can make a file in that moment."""
_TRIES: Final = 100
_given: list[int] = []  # umasks of those who started us


@contextmanager
def limited() -> Iterator[None]:
    """Deny `DENIED` to all files made within the block, also by libraries and child processes.

    A stricter umask stays as strict as it is.
    """
    _given.append(os.umask(_OURS))
    os.umask(_given[-1] | DENIED)
    try:
        yield
    finally:
        os.umask(_given.pop())


def check_access(path: str | Path, mode: int) -> None:
    """Raise `OSError` if a file or a directory does not give us this access, of `os.access`: with the reason,
    which is often a disk that is mounted read-only."""
    if not os.access(path, mode):
        is_fixed = mode & os.W_OK and os.statvfs(path).f_flag & os.ST_RDONLY
        code = errno.EROFS if is_fixed else errno.EACCES
        raise OSError(code, os.strerror(code), str(path))


def umask() -> int:
    """Return the umask of this process."""
    if _given:
        return _given[-1] | DENIED
    found = os.umask(_OURS)
    os.umask(found)
    return found


def write_secret(path: Path, text: str) -> None:
    """Write a file for its user alone, at once: a reader gets all of the old text or all of the new."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with replacing(path) as partial, os.fdopen(os.open(partial, flags, 0o600), "w") as file:
        file.write(text)


def as_given(path: str) -> None:
    """Give a new socket file of `ipc://` the permissions of the user's own umask.

    That may let a group connect.
    """
    if _given:
        os.chmod(path, 0o777 & ~_given[-1])


def make_private(directory: Path, root: Path | None = None) -> Path:
    """Make a directory for this user alone, if it does not exist, and return it.

    Raises `PermissionError`, with what to do, if other users could change it, or a directory from `root` down
    to it.
    """
    above = [path for path in directory.parents if root is not None and path.is_relative_to(root)]
    for left in reversed(range(_TRIES)):
        try:
            for path in (*reversed(above), directory):
                _make_private(path)
            break
        except FileNotFoundError:  # another process has removed one of them, as it was empty
            if not left:
                raise
    return directory


def _make_private(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    if why := distrust(path):
        raise PermissionError(f"{path} {why}")


def distrust(directory: Path) -> str:
    """Return why others could change a directory's contents, and what to do; "" if only root and we can."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no directory"
        return f"is {kind}: remove it, or choose another directory"
    if found.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user ({found.st_uid}): remove it, or choose another directory"
    if found.st_mode & WRITABLE:
        return f"can be changed by other users: look what is in it, then run chmod 0700 {directory}"
    return ""


def exposure(path: str) -> str:
    """Return what is wrong if other users can read or change a file with a secret, and what to do.

    Its group may read the file, as Debian's `ssl-cert` does.
    """
    with suppress(OSError), touching(path):  # those who read it say what is wrong
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode) and mode & DENIED:
            return f"{path} holds a secret, and other users can read or change it: run chmod 0600 {path}"
    return ""
