"""The page of all commands, generated from the parsers. Pure, but for the imports.

`python -m appliance.commandline.command_page > docs/commands.md` renews it, and so does `make generated`.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from appliance.commandline import cli
from appliance.commandline.parsing import EVERYWHERE, Parser, meaning_of, value_of

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "commands.md"
WHY_NOT_RUN: Final = "names files and addresses of yours"
_WIDTH: Final = 100

INTRODUCTION: Final = """# Commands

`make generated` writes this page from the parsers, so `buscoupler COMMAND --help` and
`man buscoupler-COMMAND` say the same. In a virtual environment `man` finds its pages with
`MANPATH=.venv/share/man:`.

Every command also takes `-h` (help), `-v` (also log normal events) and `--log text`, `journal` or `json`
([the log](log.md)); `buscoupler --version` shows the version. The value in brackets behind an option is its
default. In the examples, `plant.yaml` stands for your topology and `capture` for a directory that a recorder
wrote.

## Exit statuses

| status | meaning |
|---|---|
| 0 | done; or a signal ended a command whose normal end is a signal |
| 1 | something cannot be done (one line on standard error says what), or what the command's section says |
| 2 | wrong usage: the line says which word, and what may have been meant |
| 3 | a job with `--skip-bad` left files out |
| 130, 143 | SIGINT (Ctrl-C) or SIGTERM came before the command had finished |

A signal is the normal end of what runs until it is stopped, such as `run` or `recv` without `--count`.
"""


def page() -> str:
    """Return the text of docs/commands.md."""
    found = list(cli.described())
    lines = [INTRODUCTION, "## All commands", "", "| command | purpose |", "|---|---|"]
    lines += [f"| [{name}](#{name}) | {_cell(text)} |" for name, text, _ in found]
    for name, text, parser in found:
        lines += ["", f"## {name}", *_section(text, parser), *_more(name)]
        for below, inner in cli.below(name, parser):
            lines += ["", f"### {name} {below}", *_section(inner.description or "", inner)]
    return "\n".join([*lines, ""])


def _more(name: str) -> Iterator[str]:
    target = cli.commands(name)[name].page
    yield from ["", f"More: [{target.partition('#')[0]}]({target})"] if target else []


def _section(text: str, parser: Parser) -> Iterator[str]:
    """Yield the section of a command: purpose, usage, options, examples and exit status 1."""
    yield f"{text[:1].upper()}{text[1:]}." if text else ""
    yield from ["```text", *_usage(parser), "```"]
    rows = [_row(action) for action in parser._actions if _is_own(action)]  # noqa: SLF001
    yield from ["", "| argument | meaning |", "|---|---|", *rows] if rows else []
    if endpoints := parser.endpoints():
        yield from ["", "| endpoint | meaning |", "|---|---|"]
        yield from (f"| `{_cell(one)}` | {_cell(text)} |" for one, text in endpoints)
    elif parser.epilog:
        yield from ["", "```text", *parser.epilog.strip().splitlines(), "```"]
    if parser.examples:
        yield from ["", f"<!-- not run: {WHY_NOT_RUN} -->", "```sh", *parser.examples, "```"]
    if parser.problem:
        yield from ["", f"Exit status 1: {parser.problem}."]


def _usage(parser: Parser) -> list[str]:
    """Return the usage in lines of fixed width, broken between options only."""
    words = " ".join(parser.format_usage().removeprefix("usage:").split())
    for common in (" [-h]", " [-v]", " [--log FORM]"):
        words = words.replace(common, "", 1)
    whole = re.sub(r"\[[^][]*(?:\[[^][]*\][^][]*)*\]", lambda one: one[0].replace(" ", "\xa0"), words)
    indent = " " * (len(parser.prog) + 1)
    lines = textwrap.wrap(
        whole, _WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return [line.replace("\xa0", " ") for line in lines]


def _is_own(action: argparse.Action) -> bool:
    return action.help != argparse.SUPPRESS and action.dest not in EVERYWHERE


def _row(action: argparse.Action) -> str:
    words = " ".join(filter(None, (", ".join(action.option_strings), value_of(action))))
    return f"| `{_cell(words)}` | {_cell(meaning_of(action))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
