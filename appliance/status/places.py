"""The places where running processes can be found on this machine, and a question to one of them.

The directories of a user are for that user and for root. A socket is trusted only as far as a terminal may
show its answer: `ask` bounds the time and the size, because a process that hangs must not stop `top`.
"""

import errno
import json
import os
import socket
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from appliance.status.shape import fits

Status = dict[str, Any]
PROGRAMS = "device", "broker"
VERSION = 1
"""Version of the document. It changes when a key goes or changes its meaning, not when one is added."""
ANSWER_S = 2.0
ANSWER_BYTES = 64 << 20


def status_socket(only: Collection[str]) -> str:
    """Return the socket's name in the gateway's directory; each process has one."""
    return "-".join(["status", *sorted(only)]) + ".sock"


def runtime_directory() -> Path:
    """Return where this user's running gateways are found: a directory for each topology and gateway."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") or ("/run" if os.geteuid() == 0 else tempfile.gettempdir())
    return Path(runtime) / f"buscoupler-{os.geteuid()}"


def process_directory(program: str) -> Path:
    """Return the directory of a process that has no topology: one of `PROGRAMS`."""
    return runtime_directory() / program / str(os.getpid())


def sweep(program: str) -> None:
    """Remove what killed processes of a program left behind."""
    for path in (runtime_directory() / program).glob("*/status*.sock"):
        if is_of_program(path) and not is_listening(path):
            with suppress(OSError):
                path.unlink()
                path.parent.rmdir()


def is_of_program(path: Path) -> bool:
    """Return whether a status socket is of a process that has no topology."""
    return path.parent.parent.name in PROGRAMS and path.parent.name.isdigit()


def runtime_directories() -> list[Path]:
    """Return the runtime directories that the caller may look into: its own, and for root those of all users.

    A directory that does not belong to the user in its name is left out: somebody else made it.
    """
    found = [runtime_directory()]
    for root in ("/run", "/run/user/*", tempfile.gettempdir()):
        found += sorted(Path("/").glob(f"{root.lstrip('/')}/buscoupler-*"))
    return [path for path in dict.fromkeys(found) if _is_owners(path)]


def _is_owners(path: Path) -> bool:
    with suppress(OSError):
        owner = path.lstat().st_uid
        return path.name == f"buscoupler-{owner}" and path.is_dir() and os.access(path, os.R_OK | os.X_OK)
    return False


def sockets(directory: Path | None) -> Iterator[Path]:
    """Yield the status sockets in one gateway's directory, or in all that the caller may look into."""
    if directory is not None:
        yield from sorted(directory.glob("status*.sock"))
        return
    for root in runtime_directories():
        yield from sorted(root.glob("*/*/status*.sock"))


def ask(path: Path, limit_s: float = ANSWER_S) -> Status:
    """Return the snapshot of the process that listens on `path`. Raises `OSError` or ValueError."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(limit_s)
        sock.connect(str(path))
        with sock.makefile("rb") as answer:
            status = json.loads(answer.read(ANSWER_BYTES))
    if not isinstance(status, dict) or status.get("version") != VERSION or not fits(status):
        raise ValueError(f"{path}: a process of another version answers: use the `top` of that version")
    return status


def is_listening(path: Path) -> bool:
    """Return whether a process listens on the socket. Raises no error."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        return probe.connect_ex(str(path)) in (0, errno.EAGAIN)  # EAGAIN: others wait there too
