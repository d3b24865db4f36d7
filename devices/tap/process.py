"""The writer's process, as the gateway sees it: started, told how far the ring is filled, and started
again."""

import atexit
import json
import logging
import os
import subprocess
import sys
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from random import uniform
from typing import Any

from bus.backoff import Backoff
from bus.errors import LinkError, words_of
from bus.extras import lacking

log = logging.getLogger("buscoupler.tap")

_RETRY_MIN_S, _RETRY_MAX_S = 0.1, 10.0
_END_S = 10.0
_LINE_BYTES = 1 << 16
_POOL = "ARROW_DEFAULT_MEMORY_POOL"  # the system's gives memory back that Arrow's own would keep
_ending: dict["subprocess.Popen[bytes]", bool] = {}  # of each: whether another one goes on with its work


class WriterProcess:
    """Keeps one writer running. `on_line(state)` gets its reports; `on_lost(why)` is called if it ends by
    itself.

    `settings` are those of `devices.tap.writer.Settings`; its descriptors are inherited.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        on_line: Callable[[dict[str, Any]], None],
        on_lost: Callable[[str], None],
    ) -> None:
        for library in ("pyarrow", "numpy"):
            if find_spec(library) is None:
                raise LinkError(lacking("a capture", library, "capture"))
        self._settings, self._on_line, self._on_lost = settings, on_line, on_lost
        self._process: subprocess.Popen[bytes] | None = None
        self._pauses = Backoff(_RETRY_MIN_S, _RETRY_MAX_S, uniform)
        self._timer: TimerHandle | None = None
        self._words = b""
        self._head = 0

    @property
    def pid(self) -> int | None:
        """The process id of the running writer."""
        return None if self._process is None else self._process.pid

    def open(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._start()

    def _start(self) -> None:
        self._timer = None
        command = [sys.executable, "-P", "-m", "devices.tap.writer", json.dumps(self._settings)]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={_POOL: "system", **os.environ},
                pass_fds=[self._settings["descriptor"], self._settings["names"]],
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
        return self.notice(self._head)

    def _on_words(self) -> None:
        try:
            words = os.read(self._output.fileno(), _LINE_BYTES)
        except BlockingIOError:
            return
        if not words:
            return self._ended()
        *lines, self._words = (self._words + words).split(b"\n")
        for line in lines:
            self._pauses.reset()
            self._on_line(json.loads(line))

    def _ended(self) -> None:
        process = self._release(replaced=True)
        if process is not None:
            status = process.poll()  # it closed its output: its status comes at any moment
            self._lost(f"the writer ended{'' if status is None else f' with status {status}'}")

    def _lost(self, why: str) -> None:
        self._on_lost(why)
        self._timer = self._loop.call_later(self._pauses.next_s(), self._start)

    def notice(self, head: int) -> None:
        """Tell how far the ring is filled. A notice that the writer cannot take now is covered by the next
        one."""
        self._head = head
        if self._process is not None:
            with suppress(OSError):
                os.write(self._input.fileno(), head.to_bytes(8, sys.byteorder))

    def _release(self, replaced: bool) -> "subprocess.Popen[bytes] | None":
        """Let go of the process. The interpreter waits for it at its own end."""
        process, self._process = self._process, None
        if process is not None:
            self._loop.remove_reader(self._output)
            self._input.close()
            self._output.close()
            _ending[process] = replaced
        return process

    def close(self) -> None:
        """Let the writer write all that is in the ring and end. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        self._release(replaced=False)


def settle(limit_s: float = _END_S) -> bool:
    """Wait for writers that were let go. Returns whether all of them have ended, and wrote all they had."""
    lost = False
    for process in list(_ending):
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            log.warning("the tap's writer %d goes on writing after the gateway's end", process.pid)
            continue
        if not _ending.pop(process) and process.returncode:
            text = "the tap's writer ended with status %d: what it had not written is lost"
            log.warning(text, process.returncode)
            lost = True
    return not (_ending or lost)


atexit.register(settle)
