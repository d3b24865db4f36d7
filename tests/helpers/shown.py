"""Blocks of pages: what a reader types, and what must then appear.

A block has a language. A line before it may name the terminal in which it is typed or appears, as in
`*first terminal*`; without one, a block right behind another one has the terminal of that. A comment before
all this, `<!-- not run: REASON -->`, says why a test does not run the block.
"""

import os
import re
import secrets
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Final, NamedTuple

from tests.helpers import ROOT, alone
from tests.helpers.ports import free_port

PAGES: Final = (
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
)
_BLOCK: Final = re.compile(
    r"(?:^ *<!-- not run: ([^\n]+) -->\n)?(?:^ *\*(\w+) terminal\*\n)?^( *)```(\w*)\n(.*?)^\3```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A block of a page, at a line. `kind` is its language: `sh` and `python` are run, unless a `reason` is
    given; `text` appears. Both are in the terminal that they name, if they do."""

    kind: str
    terminal: str
    text: str
    reason: str
    line: int

    @property
    def is_program(self) -> bool:
        return self.kind in ("sh", "python")

    @property
    def is_run(self) -> bool:
        return self.is_program and not self.reason


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, without what they are indented by."""
    text, made, end = page.read_text(), list[Block](), 0
    for found in _BLOCK.finditer(text):
        reason, terminal, _, kind, body = found.groups(default="")
        if made and not terminal and not text[end : found.start()].strip():
            terminal = made[-1].terminal
        made.append(Block(kind, terminal, dedent(body), reason, text.count("\n", 0, found.start(4)) + 1))
        end = found.end()
    return made


def end_of(expected: str, seen: str) -> int | None:
    """Return where the lines end in what was seen, where others may stand between them; None if not all are
    there, in order. A blank is any white space, and `...` is anything."""
    at = 0
    for line in expected.splitlines():
        found = re.compile(_line(line)).search(seen, at)
        if found is None:
            return None
        at = found.end()
    return at


def _line(line: str) -> str:
    return re.escape(" ".join(line.split())).replace(r"\.\.\.", ".*?").replace(r"\ ", r"\s+")


class Clone:
    """A directory in which pages can be followed beside others who do the same: the command is on the PATH
    and in `.venv`, and ports, directories and hosts of pages and examples are replaced by free ones."""

    def __init__(self, home: Path) -> None:
        self.home, self._hosts = home, f"bc-{secrets.token_hex(4)}-"
        (home / "topologies").mkdir()
        for path in (ROOT / "topologies").glob("*.yaml"):
            (home / "topologies" / path.name).write_text(self.here(path.read_text()))
        programs = home / ".venv" / "bin"
        programs.mkdir(parents=True)
        for name, words in (("buscoupler", f"{sys.executable} -m buscoupler"), ("python", sys.executable)):
            (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            (programs / name).chmod(0o755)
        search = f"{programs}{os.pathsep}{os.environ['PATH']}"
        # apart, as the path of a local socket is short: gateways of others are not seen from here
        self._sockets = tempfile.TemporaryDirectory(prefix="bc-", dir="/tmp")
        own = {"TMPDIR": str(home), "XDG_STATE_HOME": str(home), "XDG_RUNTIME_DIR": self._sockets.name}
        settings = {"PATH": search, "PYTHONPATH": str(ROOT), "TERM": "dumb", **own}
        self.environment: dict[str, str] = {**alone(), **settings}

    def here(self, text: str) -> str:
        """Replace the ports, the directories and the network namespaces of a page."""
        text = re.sub(r"/tmp/(?=tutorial|buscoupler-|bus\.sock)", f"{self.home}/", text)
        text = re.sub(r"\btutorial-(?=[ab]\b)", self._hosts, text)
        return _PORT.sub(lambda found: str(_port(found[0], str(self.home))), text)

    def clear(self) -> None:
        """Delete the local sockets, and the network namespaces that a page has made and not deleted."""
        self._sockets.cleanup()
        for name in [f"{self._hosts}{host}" for host in "ab"]:
            if Path("/run/netns", name).exists():
                subprocess.run(["ip", "netns", "del", name], check=True)


_PORT: Final = re.compile(
    r"""\b25[2-9]\d\d\b|(?:(?<=\d:)|(?<=localhost:)|(?<=127\.0\.0\.1", )|(?<=port: )|(?<=port=))\d{4,5}\b"""
)


@cache
def _port(written: str, home: str) -> int:
    return free_port()
