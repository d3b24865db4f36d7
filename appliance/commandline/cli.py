"""The command line: a table of commands. Each command has its own module, imported when it is used."""

import argparse
import logging
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise

from appliance.commandline.parsing import Parser
from appliance.commandline.table import COMMANDS, Command
from appliance.log import output as log
from appliance.process import interrupts, streams
from appliance.version import version
from bus.errors import BusError, told
from bus.extras import unmet
from bus.machine import permissions


class Version(argparse.Action):
    """The option `--version`. It looks the version up on demand only: that takes longer than all imports."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"buscoupler {version()}")
        parser.exit()


def commands(selected: str | None = None) -> dict[str, Command]:
    """Return all commands by name. Jobs of the pipeline are left out if another command is selected."""
    if selected in COMMANDS:
        return COMMANDS
    from pipeline import jobs

    found = [jobs.find(selected)] if selected in jobs.NAMES else jobs.every()
    module, page, *_ = COMMANDS["pipeline"]
    return COMMANDS | {
        job.name: Command(module, page, job.help, job.examples, job.problem)
        for job in found
        if job.is_command
    }


def parser(selected: str | None = None, alone: bool = False) -> Parser:
    """Return the parser of the command line; `alone`: it knows no command but the `selected` one.

    Only the module of the `selected` command is imported, to save time.
    """
    top = Parser(prog="buscoupler", description="A bus and bridge appliance for gateways.")
    top.set_defaults(verbose=False, log=None, described=described)
    top.add_argument("--version", action=Version, nargs=0, help="show the version and exit")
    parsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND", prog=top.prog)
    known = commands(selected)
    shown = {selected: known[selected]} if alone and selected in known else known
    for name, command in shown.items():
        sub = parsers.add_parser(name, help=command.help, description=command.help)
        sub.tell(command.examples, command.problem)
        if name == selected:
            import_module(command.module).arguments(sub)
    return top


@cache
def described() -> tuple[tuple[str, str, Parser], ...]:
    """Return the name, the help and the parser of each command."""
    return tuple((name, command.help, parser(name).below()[name]) for name, command in commands().items())


def below(name: str, parser: Parser) -> Iterator[tuple[str, Parser]]:
    """Yield the subcommands of a command that are not commands themselves, with their parsers."""
    from pipeline import jobs

    for word, inner in parser.below().items():
        if name != "pipeline" or not jobs.find(word).is_command:
            yield word, inner


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Return the exit status: 0, 1 (a problem was found), 2 (wrong use), 128 + a signal."""
    streams.prepare()
    with permissions.limited(), streams.plain():
        try:
            try:
                return _command(sys.argv[1:] if arguments is None else arguments)
            finally:
                sys.stdout.flush()
        except (BusError, OSError, UnicodeError, ModuleNotFoundError) as error:
            return _fail(error)


def _command(words: list[str]) -> int:
    try:
        with interrupts.raised():
            selected = _selected(words)
            options = parser(selected, words[:1] == [selected]).parse_args(words)
            log.start(options.log, options.verbose)
            return int(import_module(commands(selected)[options.command].module).run(options))
    except BaseException as error:
        if (stop := interrupts.behind(error)) is None:
            raise
        return interrupts.status_of(stop)


def _selected(words: list[str]) -> str | None:
    """Return the first word that is neither an option nor the value of `--log`: the command."""
    plain = (
        word for before, word in pairwise(["", *words]) if before != "--log" and not word.startswith("-")
    )
    return next(plain, None)


def _fail(error: Exception) -> int:
    """Print an error without its stack, which the log has with `-v`. Return the exit status."""
    text = unmet("this command", error) if isinstance(error, ModuleNotFoundError) else _words_of(error)
    if not isinstance(error, BusError):
        logging.getLogger("buscoupler").info("the error in full", exc_info=error)
    streams.let_go()
    log.complain(text)
    return 1


def _words_of(error: Exception) -> str:
    if isinstance(error, BusError | UnicodeError):
        return str(error)
    if isinstance(error, BrokenPipeError):
        return "nobody reads the output any more"
    return told(error)
