"""A process that works for a device: a child that is started again whenever it ends.

The child gets its settings as its one argument, in JSON. It reports one JSON object a line on its output, and
ends when its input ends.
"""

import atexit
import json
import logging
import os
import subprocess
import sys
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import uniform
from typing import Any, NamedTuple

from bus import extras
from bus.backoff import Backoff
from bus.errors import words_of
from bus.machine.late import Hidden
from devices.device import CAPTURE_LIBRARIES

log = logging.getLogger("buscoupler")

_RETRY_MIN_S, _RETRY_MAX_S = 0.1, 10.0
_END_S = 10.0
_LINE_BYTES, _SAID_BYTES = 1 << 16, 200
_POOL = "ARROW_DEFAULT_MEMORY_POOL"  # the system's allocator returns memory that Arrow's own would keep
_ending: dict["subprocess.Popen[bytes]", "_Left"] = {}


class Work(NamedTuple):
    """The work of a child: the `module` to run, its `settings`, and the file `descriptors` that it inherits.

    `environment` has variables beside those of this process. `title` names the child in the log. `loss` says
    what is lost if the child fails after it was released; "" if its successor can continue.
    """

    title: str
    module: str
    settings: Mapping[str, Any]
    descriptors: Sequence[int] = ()
    environment: Mapping[str, str] = {}
    loss: str = ""


class _Left(NamedTuple):
    """The work of a released child. `replaced` is True if a successor continues it."""

    work: Work
    replaced: bool


class Child:
    """Keeps one child process running. Raises `LinkError` if pyarrow or numpy is missing.

    `on_start` is called when a process starts, `on_line(report)` with each of its reports, and `on_lost(why)`
    when it ends by itself.
    """

    def __init__(
        self,
        work: Work,
        on_line: Callable[[dict[str, Any]], None],
        on_lost: Callable[[str], None],
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        extras.check("a capture", CAPTURE_LIBRARIES)
        self._work, self._on_line, self._on_lost, self._on_start = work, on_line, on_lost, on_start
        self._process: subprocess.Popen[bytes] | None = None
        self._pauses = Backoff(_RETRY_MIN_S, _RETRY_MAX_S, uniform)
        self._timer: TimerHandle | None = None
        self._words = b""
        self._started_s = 0.0

    @property
    def pid(self) -> int | None:
        """The process id while the child runs, else None."""
        return None if self._process is None else self._process.pid

    def open(self, loop: AbstractEventLoop) -> None:
        """Start the child, and start it again with growing pauses whenever it ends."""
        self._loop = loop
        self._start()

    def _start(self) -> None:
        self._timer, self._words, self._started_s = None, b"", self._loop.time()
        _forget_ended()
        work = self._work
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", work.module, json.dumps(work.settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={_POOL: "system", **os.environ, **work.environment},
                pass_fds=work.descriptors,
                process_group=0,  # Ctrl-C is for the gateway; in one session, or niceness would not count
            )
        except OSError as error:
            return self._lost(words_of(error))
        assert process.stdin
        assert process.stdout
        self._process, self._input, self._output = process, process.stdin, process.stdout
        os.set_blocking(self._input.fileno(), False)
        os.set_blocking(self._output.fileno(), False)
        self._loop.add_reader(self._output, self._on_words)
        return self._on_start()

    def _on_words(self) -> None:
        try:
            words = os.read(self._output.fileno(), _LINE_BYTES)
        except BlockingIOError:
            return
        if not words:
            return self._ended()
        *lines, rest = (self._words + words).split(b"\n")
        self._words = rest[:_LINE_BYTES]
        for report in filter(None, map(self._report, lines)):
            self._on_line(report)

    def _report(self, line: bytes) -> dict[str, Any] | None:
        """Return the report in a line; None for what else the child prints, such as a library's warning."""
        with suppress(ValueError):
            report = json.loads(line)
            if isinstance(report, dict):
                return report
        log.info("%s says %s", self._work.title, line[:_SAID_BYTES])
        return None

    def _ended(self) -> None:
        process = self._release(replaced=True)
        if process is not None:
            status = process.poll()  # it closed its output: its status comes at any moment
            self._lost(f"{self._work.title} ended{'' if status is None else f' with status {status}'}")

    def _lost(self, why: str) -> None:
        if self._loop.time() - self._started_s > _RETRY_MAX_S:  # one that ends at once must not burn a core
            self._pauses.reset()
        self._on_lost(why)
        self._timer = self._loop.call_later(self._pauses.next_s(), self._start)

    def tell(self, words: bytes) -> None:
        """Write to the child's input as much as fits without blocking. The rest is dropped."""
        if self._process is not None:
            with suppress(OSError):
                os.write(self._input.fileno(), words)

    def _release(self, replaced: bool) -> "subprocess.Popen[bytes] | None":
        """Release the process: close its pipes. The interpreter waits for it at exit."""
        process, self._process = self._process, None
        if process is not None:
            self._loop.remove_reader(self._output)
            self._input.close()
            self._output.close()
            _ending[process] = _Left(self._work, replaced)
        return process

    def close(self) -> None:
        """Close the child's input, so that it finishes its work and ends. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        self._release(replaced=False)


def _forget_ended() -> None:
    """Forget the released children that have ended, but for those with a loss, of which `settle` tells."""
    for process, left in list(_ending.items()):
        if process.poll() is not None and (left.replaced or not process.returncode or not left.work.loss):
            del _ending[process]


def settle(limit_s: float = _END_S) -> bool:
    """Wait up to `limit_s` seconds for each released child. Return whether all ended without a loss."""
    lost = False
    for process in list(_ending):
        work = _ending[process].work
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            log.warning("%s %d goes on after the gateway's end", work.title, process.pid)
            continue
        if not _ending.pop(process).replaced and process.returncode and work.loss:
            log.warning("%s ended with status %d: %s", work.title, process.returncode, work.loss)
            lost = True
    return not (_ending or lost)


atexit.register(settle)


def hide_pandas() -> None:
    """Hide pandas from pyarrow in a child, which would otherwise import it: 40 MB that no child uses."""
    sys.meta_path.insert(0, Hidden("pandas"))
