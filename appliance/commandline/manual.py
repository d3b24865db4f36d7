"""The man pages, generated from the parsers and from the model of topologies.

They are buscoupler(1), one for each command, and buscoupler.yaml(5), written below `DIR` by
`python -m appliance.commandline.manual DIR`. The build of a wheel does so (packaging/backend). It has few
packages, so nothing that is imported here may need more than PyYAML and msgpack.
"""

import argparse
import sys
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

from appliance.commandline import cli
from appliance.commandline.parsing import EVERYWHERE, Parser, meaning_of, value_of
from topologies.writing import reference

_HEAD = '.TH {name} {section} "" "buscoupler" "buscoupler manual"'


def pages() -> dict[str, str]:
    """Return the text of each man page by its file name."""
    found = {"buscoupler.1": _overview(), "buscoupler.yaml.5": _topologies()}
    return found | {f"buscoupler-{one[0]}.1": _page(*one) for one in cli.described()}


def _overview() -> str:
    lines = [_HEAD.format(name="BUSCOUPLER", section=1), ".SH NAME"]
    lines += ["buscoupler \\- a bus and bridge appliance for gateways", ".SH SYNOPSIS"]
    lines += [".B buscoupler", "[\\-v] [\\-\\-log FORM] COMMAND ...", ".SH COMMANDS"]
    for name, help_text, _ in cli.described():
        lines += [".TP", f".BR buscoupler\\-{_text(name)} (1)", _text(help_text)]
    lines += [".SH EXIT STATUS", "0; 1 if the command found a problem; 2 for wrong usage; 130 and 143 for"]
    lines += ["Ctrl\\-C and SIGTERM before it had finished.", ".SH SEE ALSO", ".BR buscoupler.yaml (5)"]
    return _joined(lines)


def _page(name: str, help_text: str, parser: Parser) -> str:
    lines = [_HEAD.format(name=f"BUSCOUPLER-{name.upper()}", section=1), ".SH NAME"]
    lines += [f"buscoupler\\-{_text(name)} \\- {_text(help_text)}", ".SH SYNOPSIS"]
    lines += [_usage(parser), ".SH DESCRIPTION", _text(f"{parser.description}.")]
    arguments = list(_arguments(parser))
    lines += [".SH OPTIONS", *arguments] if arguments else []
    endpoints = [(".TP", f"\\fB{_text(one)}\\fR", _text(text)) for one, text in parser.endpoints()]
    lines += [".SH ENDPOINTS", *chain(*endpoints)] if endpoints else []
    lines += [".SH FORMS", *_as_written(parser.epilog)] if parser.epilog and not endpoints else []
    below = [(f".SS {name} {word}", *_subcommand(inner)) for word, inner in cli.below(name, parser)]
    lines += [".SH SUBCOMMANDS", *chain(*below)] if below else []
    lines += [".SH EXAMPLES", *_as_written("\n".join(parser.examples))] if parser.examples else []
    lines += [".SH EXIT STATUS", _text(f"1: {parser.problem}. Others: see buscoupler(1).")] * bool(
        parser.problem
    )
    lines += [".SH SEE ALSO", ".BR buscoupler (1),", ".BR buscoupler.yaml (5)"]
    return _joined(lines)


def _usage(parser: Parser) -> str:
    return _text(" ".join(parser.format_usage().removeprefix("usage:").split()))


def _as_written(text: str) -> list[str]:
    return [".nf", *map(_text, text.strip().splitlines()), ".fi"]


def _subcommand(parser: Parser) -> Iterator[str]:
    yield _usage(parser)
    yield from [".PP", _text(f"{parser.description}.")]
    yield from _arguments(parser, EVERYWHERE)
    yield from [".PP", *_as_written("\n".join(parser.examples))] if parser.examples else []
    yield from [".PP", _text(f"Exit status 1: {parser.problem}.")] if parser.problem else []


def _arguments(parser: Parser, left_out: Collection[str] = ()) -> Iterator[str]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to its arguments
        if action.help != argparse.SUPPRESS and action.dest not in left_out:
            names, value = ", ".join(action.option_strings), value_of(action)
            yield ".TP"
            yield f"\\fB{_text(names)}\\fR {_text(value)}".rstrip() if names else f"\\fB{_text(value)}\\fR"
            yield _text(meaning_of(action))


def _topologies() -> str:
    """Return buscoupler.yaml(5): the reference of all keys, with its tables as lists."""
    lines = [_HEAD.format(name="BUSCOUPLER.YAML", section=5), ".SH NAME"]
    lines += ["buscoupler.yaml \\- topology files of buscoupler", ".SH DESCRIPTION"]
    for line in reference.page().splitlines()[1:]:
        lines += _of_markdown(line)
    return _joined([*lines, ".SH SEE ALSO", ".BR buscoupler\\-check (1)"])


def _of_markdown(line: str) -> list[str]:
    if line.startswith("## "):
        return [f".SH {_text(line[3:].upper())}"]
    if line.startswith(("|---", "| key |")):
        return []
    if line.startswith("| "):
        key, value, default, meaning = (
            cell.strip() for cell in line.strip("| ").replace("\\|", "/").split(" | ", 3)
        )
        words = f"{value}; default {default}" if default and "required" not in default else value
        return [".TP", f"\\fB{_text(key)}\\fR ({_text(words)})", _text(meaning)]
    return [_text(line)] if line else [".PP"]


def _text(text: str) -> str:
    """Return text without the marks of Markdown, and with everything escaped that roff would interpret."""
    plain = text.replace("`", "").replace("**", "").replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def _joined(lines: list[str]) -> str:
    """Join lines to a text without empty paragraphs."""
    around = zip(["", *lines], lines, [*lines[1:], ""], strict=False)
    kept = [
        line for before, line, after in around
        if line != ".PP" or not (before.startswith((".PP", ".SH")) or after.startswith((".PP", ".SH", ".TP")))
    ]  # fmt: skip
    return "\n".join([*kept, ""])


def write(directory: str) -> None:
    """Write all man pages to `man1` and `man5` below a directory."""
    for name, text in pages().items():
        file = Path(directory) / f"man{name[-1]}" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    write(sys.argv[1])
