"""The tutorial works as it is written: its blocks are typed into terminals, which show what it shows."""

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.shown import Clone, blocks, end_of

PAGE = ROOT / "docs" / "tutorial.md"
PROMPT = "READY> "
WAIT_S = 60.0


class Terminal:
    """A shell in a pseudo-terminal. `seen` is what it has shown since the last match."""

    def __init__(self, clone: Clone) -> None:
        self.descriptor, line = pty.openpty()
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("4H", 40, 100, 0, 0))
        self._shell = subprocess.Popen(
            # a run of tests in the background ignores both signals, and so would all that it starts
            ["env", "--default-signal=INT,QUIT", "setsid", "--ctty", "bash", "--norc", "--noprofile"],
            stdin=line, stdout=line, stderr=line, cwd=clone.home, env=clone.environment | {"PS1": PROMPT},
        )  # fmt: skip
        os.close(line)
        self.seen = ""
        self.type("stty -echo")
        self.wait("")

    def type(self, text: str) -> None:
        for key, byte in (("^C", b"\x03"), ("^\\", b"\x1c")):
            if text.strip() == key:
                os.write(self.descriptor, byte)
                return
        os.write(self.descriptor, text.rstrip().encode() + b"\n")

    def read(self) -> None:
        """Take what has appeared within a moment."""
        if select.select([self.descriptor], [], [], 0.05)[0]:
            more = os.read(self.descriptor, 65536).decode(errors="replace")
            self.seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", more)

    def wait(self, expected: str) -> None:
        """Wait until all lines have appeared, in order; for none, until the shell is ready."""
        end_s = time.monotonic() + WAIT_S
        while (end := end_of(expected, self.seen) if expected else self._ready()) is None:
            assert time.monotonic() < end_s, f"this did not appear:\n{expected}\nbut:\n{self.seen}"
            self.read()
        self.seen = self.seen[end:]

    def _ready(self) -> int | None:
        at = self.seen.find(PROMPT)
        return None if at < 0 else at + len(PROMPT)

    def close(self) -> None:
        """Kill the shell and what runs in its foreground: at a hang-up a gateway would only reload."""
        for group in {os.tcgetpgrp(self.descriptor), self._shell.pid}:
            os.killpg(group, signal.SIGKILL)
        os.close(self.descriptor)
        self._shell.wait()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.fixture
def terminals(clone: Clone) -> Iterator[dict[str, Terminal]]:
    opened = {name: Terminal(clone) for name in dict.fromkeys(block.terminal for block in blocks(PAGE))}
    yield opened
    for terminal in opened.values():
        terminal.close()


@pytest.mark.timeout(240)
@pytest.mark.skipif(not shutil.which("socat"), reason="Debian package socat")
def test_the_tutorial_works_as_it_is_written(clone: Clone, terminals: dict[str, Terminal]) -> None:
    for package in ("pysail", "can", "serial", "rich"):
        pytest.importorskip(package)
    for block in blocks(PAGE):
        terminal = terminals[block.terminal]
        if block.kind == "sh":
            terminal.type(clone.here(block.text))
        else:
            terminal.wait(clone.here(block.text))


def test_each_block_names_its_terminal() -> None:
    assert PAGE.read_text().count("```") == 2 * len(blocks(PAGE))
    assert {block.kind for block in blocks(PAGE)} == {"sh", "text"}
