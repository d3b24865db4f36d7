"""Commands, flags and files that pages name exist."""

import argparse
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.commandline import cli
from tests.helpers import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"\bbuscoupler ([a-z]+)((?: [^\n`|&>]*)?)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
# By commands that ran here.
MADE = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
FOLDERS = "|".join(path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in MADE)
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]+)`")
MISTYPED = "rcv"  # on the page for troubleshooting
TOPICS = "buscoupler/"  # a pattern of events begins like a path


def code(page: Path) -> Iterator[str]:
    """Return each line of code of a page: in blocks, and between backticks."""
    text = page.read_text()
    for language, block in re.findall(r"^```(\w*).*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language in ("", "sh"):
            yield from block.splitlines()
        yield from (line for line in block.splitlines() if line.startswith("$ "))
    yield from re.findall(r"`(buscoupler [^`\n]+)`", text)
    yield from (line for line in text.splitlines() if line.startswith("    buscoupler "))


def flags(command: str) -> set[str]:
    """Return the flags of a command and of what it has below it."""
    parser = cli.parser(command)
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
    return set(_flags(commands.choices[command])) | set(_flags(parser))


def _flags(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:  # noqa: SLF001
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                yield from _flags(below)


def used() -> dict[str, set[str]]:
    """Return the commands on all pages, with the flags that they are shown with."""
    found: dict[str, set[str]] = {}
    for page in PAGES:
        for line in code(page):
            for word, rest in COMMAND.findall(line.partition(" #")[0]):
                found.setdefault(word, set()).update(FLAG.findall(rest))
    return found


USED = used()


def test_pages_show_most_commands() -> None:
    assert len(USED.keys() & cli.commands().keys()) > 12


@pytest.mark.parametrize("command", sorted(USED.keys() - {MISTYPED}))
def test_each_command_and_flag_on_a_page_exists(command: str) -> None:
    assert command in cli.commands()
    assert USED[command] - flags(command) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_file_that_a_page_names_exists(page: Path) -> None:
    found = (name for name in PATH.findall(page.read_text()) if "NAME" not in name)
    missing = [name for name in found if not (ROOT / name).exists() and not name.startswith(TOPICS)]
    assert missing == []


def test_the_page_to_read_first_names_each_extra_that_is_for_users() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    _, _, listed = (ROOT / "README.md").read_text().partition("The extras are ")
    sentence = listed.partition(". ")[0]
    assert {one for one in extras if f"`{one}`" not in sentence} == FOR_DEVELOPERS


FOR_DEVELOPERS = {"bench", "dev", "docs", "engines", "fuzz", "quick"}
