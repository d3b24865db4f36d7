"""The output of the log: a thread writes, so a standard error that nobody reads blocks only the thread."""

import logging
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from math import ceil
from typing import Final

from appliance.log.formats import FORMATS, Format, default
from appliance.log.repeats import Repeats, message_of
from bus.errors import words_of
from bus.text import plain

LINES: Final = 1024
"""Lines that wait for a reader. More are dropped and counted."""

_END_S: Final = 0.5  # for what waits, when the command ends
_output: "Output | None" = None


class Output(logging.Handler):
    """A handler that queues records for its thread, which begins with the first of them.

    While the interpreter ends there are no threads: then a line is written at once, if there is room for it.
    `lost` counts lines that the queue or the file did not take. Without `stacks` a record is one line.
    """

    def __init__(self, file: int, form: Format, encoding: str = "utf-8", stacks: bool = True) -> None:
        super().__init__()
        self.lost, self._stacks = 0, stacks
        self.form, self._file, self._encoding = form, file, encoding
        self._queue: deque[logging.LogRecord] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = self._ending = False
        self._repeats = Repeats()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record. Its message is made now: the arguments may change."""
        record.msg, record.args = message_of(record), None
        if not self._stacks:
            fold(record)
        if sys.is_finalizing():  # a thread would never start, and one that is stopped may hold the lock
            return self._put_now(self.form(record, str(record.msg)))
        with self._changed:
            if len(self._queue) >= LINES:
                self.lost += 1
                return
            self._queue.append(record)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            record, ending = self._next()
            for line in self._lines(record, ending):
                self._put(line)
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                if ending and not self._queue:
                    return

    def _next(self) -> tuple[logging.LogRecord | None, bool]:
        """Wait for a record, the time of held lines, or the end. Return the record, and True at the end."""
        with self._changed:
            wait_s = self._repeats.next_s(time.monotonic())
            self._changed.wait_for(lambda: self._queue or self._ending, wait_s)
            self._busy = True
            return (self._queue.popleft() if self._queue else None), self._ending and not self._queue

    def _lines(self, record: logging.LogRecord | None, ending: bool) -> Iterator[str]:
        if record is not None and self._repeats.passes(record, time.monotonic()):
            yield self.form(record, str(record.msg))
        now = time.monotonic()
        for held in self._repeats.rest(now) if ending else self._repeats.due(now):
            words = f"{held.last.msg} (and {held.more} more in {ceil(held.seconds)} s)"
            yield self.form(held.last, words)

    def _put(self, line: str) -> None:
        """Write a line, after one that counts lost lines if there are any."""
        lost = self.lost
        if lost and self._write(self._of_lost(lost)):
            self._count(-lost)
        if not self._write(line):
            self._count(1)

    def _put_now(self, line: str) -> None:
        if select.select((), (self._file,), (), 0)[1]:  # then a pipe takes so many bytes without waiting
            self._write(line.encode()[: select.PIPE_BUF - 1].decode(errors="ignore"))

    def _count(self, more: int) -> None:
        with self._changed:
            self.lost += more

    def _of_lost(self, lost: int) -> str:
        text = f"{lost} lines of the log were lost: nobody read them, or the disk was full"
        return self.form(logging.LogRecord("buscoupler.log", logging.WARNING, "", 0, text, None, None), text)

    def _write(self, line: str) -> bool:
        """Write a line. Return False if nobody takes it: the reader has gone, or the disk is full."""
        data = memoryview(f"{line}\n".encode(self._encoding, "backslashreplace"))
        while data:
            try:
                data = data[os.write(self._file, data) :]
            except BlockingIOError:
                select.select((), (self._file,), ())
            except OSError:
                return False
        return True

    def flush(self) -> None:
        """Wait until all lines are written, but not long: perhaps nobody reads them."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._queue or self._busy), _END_S)

    def close(self) -> None:
        """Write what waits and is held back, and end the thread. Idempotent."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_END_S)
        super().close()


def fold(record: logging.LogRecord) -> None:
    """Put the error of a record behind its first line, in place of its stack."""
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        head = str(record.msg).partition("\n")[0]
        record.msg, record.exc_info = f"{head}: {type(error).__name__}: {plain(words_of(error))}", None


def _on_thread(failed: threading.ExceptHookArgs) -> None:
    """Log the error that ended a thread."""
    if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
        name = failed.thread.name if failed.thread else "unknown"
        logging.getLogger("buscoupler").error("the thread %s has ended", name, exc_info=failed.exc_value)


def start(form: str | None, verbose: bool) -> None:
    """Start the log: warnings, or with `verbose` also normal events. Do nothing if it has started."""
    global _output
    root = logging.getLogger()
    if root.handlers or sys.stderr is None:  # without a standard error its number may be a peer's
        return
    _output = Output(sys.stderr.fileno(), FORMATS[form or default()], sys.stderr.encoding, verbose)
    root.addHandler(_output)
    threading.excepthook = _on_thread
    root.setLevel(logging.INFO if verbose else logging.WARNING)


def complain(text: str) -> None:
    """Print why the command ends, after all log lines. If programs read the log, log it as an error."""
    if _output is not None:
        _output.flush()
    if _output is not None and _output.form is not FORMATS["text"]:
        return logging.getLogger("buscoupler").error("%s", text)
    with suppress(OSError):
        print(f"buscoupler: {text}", file=sys.stderr)
    return None
