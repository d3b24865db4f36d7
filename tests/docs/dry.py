"""Looks at commands of pages without running them: their parsers accept them, and their files exist."""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

from appliance.commandline import cli
from bus.errors import BusError
from tests.helpers import ROOT

_WORDS = re.compile(r"^[\w./:-]+$")
_STOPS = {"|", "&", "&&", "||", ";", ">", ">>", "<", "<<", "2>"}
_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PLANT = (ROOT / "topologies" / "cold-chain.yaml").read_text()


def faults(text: str, directory: Path) -> list[str]:
    """Return what is wrong with the lines of a block. The directory gets the topologies of the pages."""
    for name in ("plant.yaml", "plant-new.yaml"):
        (directory / name).write_text(PLANT)
    with chdir(directory):
        return [f"{' '.join(words)}: {fault}" for words in commands(text) for fault in _faults(words)]


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command, without heredocs, redirections, and variables before it."""
    text = re.sub(r"<<'?(\w+)'?([^\n]*)\n.*?^\1$", r"\2", text, flags=re.MULTILINE | re.DOTALL)
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, "#"
        command: list[str] = []
        for word in [*lexer, ";"]:
            if word in _STOPS or word.startswith((">", "<")):
                yield from [command] if command else []
                command = []
            else:
                command += [] if not command and re.match(r"[A-Z_]+=|[A-Z]+='?$|\$ ?$", word) else [word]


def _faults(words: list[str]) -> Iterator[str]:
    program, *rest = words
    if os.path.basename(program) == "buscoupler":
        yield from _parsed(rest)
    elif program == "make":
        yield from (f"no target {word}" for word in rest if "=" not in word and word not in _TARGETS)
    elif os.path.basename(program).startswith("python") and rest[:1] == ["-m"]:
        yield from [] if find_spec(rest[1]) or rest[1] == "pip" else [f"no module {rest[1]}"]
    for word in rest:
        if word.startswith(("topologies/", "examples/", "docs/")) and not (ROOT / word).exists():
            yield f"no file {word}"


def _parsed(words: list[str]) -> Iterator[str]:
    selected = next((word for word in words if not word.startswith("-")), "")
    said = StringIO()
    try:
        with redirect_stderr(said):
            cli.parser(selected).parse_args(words)
    except SystemExit as stop:
        yield from [said.getvalue()] if stop.code else []
    except (BusError, OSError) as error:
        yield str(error)
