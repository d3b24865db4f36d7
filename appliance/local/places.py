"""The directories and names of the local sockets of running processes.

The directories of a user are for that user and for root.
"""

import errno
import os
import pwd
import socket
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from bus.machine import permissions

OTHERS_MAX = 64
"""The sockets of each other user that are looked at."""

PROGRAMS = "device", "broker", "syndicate", "catalog"


def socket_name(word: str, only: Collection[str] = ()) -> str:
    """Return the name of a process's socket for `word` in the gateway's directory."""
    return "-".join([word, *sorted(only)]) + ".sock"


def runtime_directory() -> Path:
    """Return this user's runtime directory, which has a directory for each topology and gateway."""
    given = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("RUNTIME_DIRECTORY")  # a user's, a service's
    runtime = Path(given) if given else Path("/run") if os.geteuid() == 0 else _temporary()
    return runtime / f"buscoupler-{os.geteuid()}"


def _temporary() -> Path:
    import tempfile  # late: it loads `shutil` and three packers

    return Path(tempfile.gettempdir())


def process_directory(program: str) -> Path:
    """Return the directory of a process that has no topology: one of `PROGRAMS`."""
    return runtime_directory() / program / str(os.getpid())


def sweep(program: str) -> None:
    """Remove the sockets that killed processes of a program left behind."""
    if not _is_owners(runtime_directory()):
        return
    for path in (runtime_directory() / program).glob("*/*.sock"):
        if is_of_program(path) and not is_listening(path):
            with suppress(OSError):
                path.unlink()
                clear(path.parent)


def clear(directory: Path) -> None:
    """Remove a directory that is empty, and those above it in the runtime directory that are empty then."""
    root = runtime_directory()
    with suppress(OSError):  # one of them is not empty, or gone
        for path in (directory, *directory.parents):
            if path != directory and root not in path.parents:
                return
            path.rmdir()


def is_of_program(path: Path) -> bool:
    """Return whether a socket is of a process that has no topology."""
    return path.parent.parent.name in PROGRAMS and path.parent.name.isdigit()


def runtime_directories() -> list[Path]:
    """Return the runtime directories that the caller may look into: its own, and for root those of all users.

    A directory that does not belong to the user in its name, or that others can change, is left out.
    """
    found = [runtime_directory()]
    for place in ("buscoupler-*", "*/buscoupler-*", "user/*/buscoupler-*"):
        found += sorted(Path("/run").glob(place))
    found += sorted(_temporary().glob("buscoupler-*"))
    return [path for path in dict.fromkeys(found) if _is_owners(path)]


def _is_owners(path: Path) -> bool:
    with suppress(OSError):
        found = path.lstat()
        private = stat.S_ISDIR(found.st_mode) and not found.st_mode & permissions.WRITABLE
        return path.name == f"buscoupler-{found.st_uid}" and private and os.access(path, os.R_OK | os.X_OK)
    return False


def sockets(word: str, directory: Path | None, others: bool = True) -> Iterator[Path]:
    """Yield the sockets of a `word` in one gateway's directory, or in all that the caller may look into.

    Without `others`, for root: only in its own and in those of services.
    """
    if directory is not None:
        yield from sorted(directory.glob(f"{word}*.sock"))
        return
    for root in runtime_directories():
        if not (others or is_ours(root)):
            continue
        there = root.glob(f"*/*/{word}*.sock")
        yield from sorted(there if is_own(root) else islice(there, OTHERS_MAX))


def is_own(directory: Path) -> bool:
    """Return whether a runtime directory is that of this user."""
    return directory.name == f"buscoupler-{os.geteuid()}"


def is_ours(directory: Path) -> bool:
    """Return whether a runtime directory is this user's, or a service's: only root makes those below /run."""
    with suppress(OSError):
        place = directory.parent
        return is_own(directory) or (
            Path("/run") in (place, place.parent) and not place.stat().st_mode & permissions.WRITABLE
        )
    return False


def user_of(directory: Path) -> str:
    """Return the name, or else the number, of the user of a runtime directory; "" for this user's."""
    with suppress(OSError, KeyError):
        return "" if is_own(directory) else pwd.getpwuid(directory.lstat().st_uid).pw_name
    return directory.name.rpartition("-")[2]


def is_meant(file: str | None, gateway: str | None, its_file: str, its_gateway: str) -> bool:
    """Return whether a process runs this file and gateway. None stands for any."""
    same = file is None or os.path.realpath(file) == os.path.realpath(its_file)
    return same and gateway in (None, its_gateway)


def no_process_text(
    file: str | None, gateway: str | None, directory: Path | None, others: Collection[str]
) -> str:
    """Return the text that no process runs a file and gateway. `others` are titles of running processes."""
    wanted = [f"gateway {gateway}"] if gateway else ["gateway"]
    wanted += [f"of {file}"] if file else []
    where = directory or ", ".join(map(str, runtime_directories())) or "this user's directories"
    hint = (
        f"running: {'; '.join(others)}"
        if others
        else "start one with `buscoupler run`, or give --run-directory"
    )
    return f"no running {' '.join(wanted)} in {where}: {hint}"


def is_listening(path: Path) -> bool:
    """Return whether a process listens on the socket. Raises no error."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        return probe.connect_ex(str(path)) in (0, errno.EAGAIN)  # EAGAIN: others wait there too
