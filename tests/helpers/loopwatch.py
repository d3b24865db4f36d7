"""A watch for calls that block on the thread of an event loop: it sees them by the audit events of Python.

What a test measures so is the same on a busy machine: no time is taken.
"""

import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import currentframe
from types import FrameType
from typing import Any, Final

from tests.helpers import ROOT

EVENTS: Final = {
    "open", "os.listdir", "os.scandir", "socket.getaddrinfo", "socket.gethostbyname", "subprocess.Popen",
    "sqlite3.connect", "time.sleep", "fcntl.flock", "os.fork",
}  # fmt: skip
_LOADS: Final = ("load_cert_chain", "load_verify_locations", "load_default_certs")  # which have no event
_KERNEL: Final = ("/proc/", "/sys/")  # files that are memory


class LoopWatch:
    """The blocking calls that were seen, each as its event and the places of ours that led to it."""

    def __init__(self) -> None:
        self.seen: dict[str, None] = {}
        self._thread: int | None = None
        sys.addaudithook(self._hook)  # for as long as the process lives: nobody can take it back

    @contextmanager
    def on(self) -> Iterator[None]:
        """Watch this thread within the block."""
        self._thread = threading.get_ident()
        with _loads_told(self._tell):
            try:
                yield
            finally:
                self._thread = None

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self._thread is not None and event in EVENTS and self._thread == threading.get_ident():
            self._judge(event, args)

    def _judge(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and (isinstance(args[0], int) or str(args[0]).startswith(_KERNEL)):
            return
        self._tell(f"{event} {args[0]}" if args else event)

    def _tell(self, what: str) -> None:
        if self._thread == threading.get_ident():
            self.seen[f"{what}: {' < '.join(_places(currentframe()))}"] = None


def _places(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(f"{ROOT}/") and "/.venv/" not in name and "/tests/" not in name:
            yield f"{name.removeprefix(f'{ROOT}/')}:{frame.f_lineno}"
        frame = frame.f_back


@contextmanager
def _loads_told(tell: Any) -> Iterator[None]:
    before = {name: getattr(ssl.SSLContext, name) for name in _LOADS}

    def told(name: str) -> Any:
        def call(self: ssl.SSLContext, *args: Any, **more: Any) -> Any:
            tell(f"ssl {name}")
            return before[name](self, *args, **more)

        return call

    try:
        for name in _LOADS:
            setattr(ssl.SSLContext, name, told(name))
        yield
    finally:
        for name, call in before.items():
            setattr(ssl.SSLContext, name, call)
