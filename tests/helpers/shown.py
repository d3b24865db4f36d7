"""Blocks of pages: what a reader types, and what must then appear."""

import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.helpers import ROOT, alone
from tests.helpers.ports import free_port

_BLOCK = re.compile(r"^```(\w+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of a page: `sh` is typed, `text` appears; both in the terminal that it names, if it does."""

    kind: str
    terminal: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*parts) for parts in _BLOCK.findall(page.read_text())]


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
    """A directory in which pages can be followed beside others who do the same: the command is on the PATH,
    and ports and directories of pages and examples are replaced by free ones."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "topologies").mkdir()
        for path in (ROOT / "topologies").glob("*.yaml"):
            (home / "topologies" / path.name).write_text(self.here(path.read_text()))
        programs = home / "bin"
        programs.mkdir()
        (programs / "buscoupler").write_text(f'#!/bin/sh\nexec {sys.executable} -m buscoupler "$@"\n')
        (programs / "buscoupler").chmod(0o755)
        search = f"{programs}{os.pathsep}{os.environ['PATH']}"
        settings = {"PATH": search, "PYTHONPATH": str(ROOT), "TERM": "dumb"}
        self.environment: dict[str, str] = {**alone(), **settings}

    def here(self, text: str) -> str:
        """Replace the ports and the directory of a page."""
        text = text.replace("/tmp/tutorial", str(self.home / "tutorial"))
        return re.sub(r"\b25[2-9]\d\d\b", lambda found: str(_port(found[0], str(self.home))), text)


@cache
def _port(written: str, home: str) -> int:
    return free_port()
