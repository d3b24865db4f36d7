"""The parser of the command line: options of the log at any place, and a hint for a word that is misspelt."""

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from appliance.commandline.meant import MEANT, TOLD
from appliance.log.formats import FORMATS
from bus.text import closest, nearest, plain

DATA: Final = "--data"
EVERYWHERE: Final = ("help", "verbose", "log")
"""Options that every command has, by their place among its options."""
_EMPTY = "an empty word: write a value (is a variable of your shell not set?)"
_LIKE = 0.6  # of an option; the usage beside the error lists them all


class Subcommands(argparse._SubParsersAction):  # type: ignore[type-arg]  # noqa: SLF001 - no other way
    """The argument that chooses a subcommand. A subcommand is described by its help, if by nothing else."""

    def add_parser(self, name: str, **settings: Any) -> Any:
        return super().add_parser(name, **{"description": settings.get("help"), **settings})


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return the formatter of a parser, which asks for one at each argument.

    By itself it finds the width by `shutil`, which loads three packers that a gateway then keeps.
    """
    return argparse.HelpFormatter(prog, width=_columns() - 2)


def _columns() -> int:
    """Return the width of the terminal, as `shutil` finds it."""
    if (told := os.environ.get("COLUMNS", "")).isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


class Parser(argparse.ArgumentParser):
    """A parser with `-v` and `--log`, which all parsers of its subcommands have too.

    `examples` are command lines and `problem` says when the exit status is 1: `tell` sets both for `--help`
    and the pages that are made of parsers.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{"formatter_class": _formatter, **settings})
        self.register("action", "parsers", Subcommands)
        self.examples: tuple[str, ...] = ()
        self.problem = ""
        group = self.add_argument_group("log")  # suppressed: a subcommand must not undo what came before it
        group.add_argument(
            "-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help="also log normal events"
        )
        group.add_argument(
            "--log", choices=list(FORMATS), default=argparse.SUPPRESS, metavar="FORM",
            help=f"form of the log: {', '.join(FORMATS)} (journal under systemd, else text)",
        )  # fmt: skip

    def tell(self, examples: tuple[str, ...], problem: str) -> None:
        """Set the examples and the meaning of exit status 1, which `--help` prints below the options."""
        self.examples, self.problem = examples, problem

    def endpoints(self) -> list[tuple[str, str]]:
        """Return each way to write an endpoint of this distribution, if the command takes one; else none."""
        rows: Callable[[], list[tuple[str, str]]] | None = self.get_default("endpoints")
        return rows() if rows else []

    def below(self) -> dict[str, "Parser"]:
        """Return the parsers of the subcommands by their names; none if there are no subcommands."""
        return next((action.choices for action in self._actions if isinstance(action, Subcommands)), {})

    def format_help(self) -> str:
        """Return the help of the base class, followed by the examples and exit status 1."""
        lines = ["", "examples:", *(f"  {example}" for example in self.examples)] if self.examples else []
        lines += ["", *textwrap.wrap(f"exit status 1: {self.problem}", 78)] if self.problem else []
        return super().format_help() + "".join(f"{line}\n" for line in lines)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as the base class does, but report an unknown option before anything that is missing."""
        for word in args or ():
            if word == "--" or (not word.startswith("-") and self._subparsers is not None):
                break  # the parser of the subcommand looks at the rest
            if word.startswith("--"):
                self._check_option(word.partition("=")[0])
        found, rest = super().parse_known_args(args, namespace)
        rest = self._placed(found, rest)
        if rest and self._subparsers is None:
            has_data = DATA in self._option_string_actions and not rest[0].startswith("-")
            hint = f"; did you mean {DATA} {rest[0]}?" if has_data else ""
            self.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
        return found, rest

    def _placed(self, found: argparse.Namespace, rest: list[str]) -> list[str]:
        """Assign words behind an option to optional arguments that are still missing, as Python 3.13 does."""
        for action in self._get_positional_actions():
            late = action.nargs == argparse.OPTIONAL and vars(found).get(action.dest) is None
            if late and rest and (rest[0] == "-" or not rest[0].startswith("-")):
                setattr(found, action.dest, self._get_values(action, [rest.pop(0)]))
        return rest

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a message. Unlike the base class, raise the error of a standard output that takes nothing."""
        if file is sys.stdout and message:
            file.write(message)
        else:
            super()._print_message(message, file)

    def _check_option(self, name: str) -> None:
        known = [option for option in self._option_string_actions if option.startswith("--")]
        if not any(option.startswith(name) for option in known):
            # without the dashes, which make any two options alike
            near = closest(name[2:], [option[2:] for option in known], _LIKE)
            hint = f'; did you mean "--{near}"?' if near else ""
            self.error(f"unknown option {name}{hint}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Return the values of an argument. An empty word of no type is an error, not all, none or `.`."""
        words = action.choices is None and action.type in (None, Path) and action.nargs != argparse.PARSER
        if words and "" in arg_strings:
            raise argparse.ArgumentError(action, _EMPTY)
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"{value!r} is unknown{_hint(action, str(value))}")

    def error(self, message: str) -> NoReturn:
        """End with status 2 and one line that says what is wrong, and where the usage is."""
        self.exit(2, f"{self.prog}: error: {plain(message)} (usage: {self.prog} --help)\n")


def value_of(action: argparse.Action) -> str:
    """Return the value of an argument as pages show it: its choices, or a word; in brackets if optional."""
    word = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings or action.nargs == 0:
        return "" if action.option_strings else word
    shown = word if action.choices is None else f"{{{','.join(map(str, action.choices))}}}"
    return f"[{shown}]" if action.nargs == argparse.OPTIONAL else shown


def meaning_of(action: argparse.Action) -> str:
    """Return what an argument means, in plain text."""
    if isinstance(action, Subcommands):
        return f"one of {', '.join(action.choices)}"
    return (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")


def _hint(action: argparse.Action, word: str) -> str:
    """Return a hint for an unknown word: by its meaning if it is a command elsewhere, else by its letters."""
    known = [str(choice) for choice in action.choices or ()]
    if MEANT.get(word) in known:
        return f'; did you mean "{MEANT[word]}"?'
    if word in TOLD and set(MEANT.values()) & set(known):
        return TOLD[word]
    return nearest(word, known)
