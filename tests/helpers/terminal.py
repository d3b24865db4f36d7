"""A shell in a pseudo-terminal, for tests that follow a page."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.helpers.shown import end_of

WAIT_S: Final = 100.0  # longer is a hang, on a busy machine too
FAILED: Final = "this command failed: "
_KEYS: Final = {"^C": b"\x03", "^\\": b"\x1c"}
_PROMPT: Final = re.compile(r"READY (\d+)> ")
_START: Final = f"""stty -echo; set -E; PS1='READY \\#> '; trap 'echo "{FAILED}$BASH_COMMAND"' ERR"""


def shown_by(descriptor: int) -> bytes:
    """Return all that a pseudo-terminal shows, once nobody has its other end open."""
    text = b""
    with suppress(OSError):  # the end, on Linux
        while some := os.read(descriptor, 65536):
            text += some
    return text


class Terminal:
    """A shell in a pseudo-terminal. `seen` is what it has shown since the last match.

    Its prompt has the number of the line that is to come, so it is known when what was typed has ended.
    """

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.descriptor, line = pty.openpty()
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("4H", 40, 100, 0, 0))
        self._shell = subprocess.Popen(
            # a run of tests in the background ignores both signals, and so would all that it starts
            ["env", "--default-signal=INT,QUIT", "setsid", "--ctty", "bash", "--norc", "--noprofile"],
            stdin=line, stdout=line, stderr=line, cwd=home, env=environment | {"PS1": "READY \\#> "},
        )  # fmt: skip
        os.close(line)
        self.seen, self._typed, self._shown = "", 0, 0
        self._is_ending = False
        self.type(_START)
        self.finish()
        self.seen = ""  # the shell still showed what was typed

    def type(self, line: str) -> None:
        """Type a line, or press a key that ends what runs."""
        self._is_ending = line in _KEYS
        self._typed += not self._is_ending
        os.write(self.descriptor, _KEYS.get(line, line.encode() + b"\n"))

    @property
    def is_idle(self) -> bool:
        """Whether the prompt after the last line has appeared."""
        self.read()
        return self._shown > self._typed

    def read(self) -> None:
        """Take what has appeared within a moment."""
        if select.select([self.descriptor], [], [], 0.02)[0]:
            more = os.read(self.descriptor, 65536).decode(errors="replace")
            self.seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", more)
            self._shown = max(map(int, _PROMPT.findall(self.seen)), default=self._shown)

    def wait(self, expected: str) -> None:
        """Wait until all lines have appeared, in order, and for the prompt if a key was to end what runs: a
        gateway finishes its capture behind its last line. A line `^C` is a key that is pressed then."""
        for number, part in enumerate(re.split(r"^\^C\n", expected, flags=re.MULTILINE)):
            if number:
                self.type("^C")
            self._wait(part)
        if self._is_ending:
            self.finish()

    def _wait(self, expected: str) -> None:
        end_s = time.monotonic() + WAIT_S
        while (end := end_of(expected, self.seen)) is None:
            assert time.monotonic() < end_s, f"this did not appear:\n{expected}\nbut:\n{self.seen}"
            if self.is_idle and end_of(expected, self.seen) is None:
                assert len(self._session()) > 1, f"this did not appear:\n{expected}\nbut:\n{self.seen}"
        self.seen = self.seen[end:]

    def end(self) -> None:
        """End what runs, with one key: a gateway that is to end may still finish its capture."""
        if not self.is_idle and not self._is_ending:
            self.type("^C")
        self.finish()

    def finish(self) -> None:
        """Wait until what was typed has ended."""
        end_s = time.monotonic() + WAIT_S
        while not self.is_idle:
            assert time.monotonic() < end_s, f"this has not ended:\n{self.seen}"

    def _session(self) -> list[int]:
        """Return the processes of this terminal."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended meanwhile
                session = path.read_text().rpartition(")")[2].split()[3]
                found += [int(path.parent.name)] if session == str(self._shell.pid) else []
        return found

    def close(self) -> None:
        """Kill the shell and all that it started: at a hang-up a gateway would only reload."""
        for process in self._session():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        os.close(self.descriptor)
        self._shell.wait()
