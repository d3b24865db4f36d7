"""The command line: a table of commands. Each command has its own module, imported when it is used."""

import argparse
import logging
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise

from appliance import interrupts, streams
from appliance.log import output as log
from appliance.parsing import Parser
from bus import permissions
from bus.errors import BusError, words_of
from bus.extras import lacking

# name -> (module, one line of help); each module has `arguments(parser)` and `run(options) -> int`.
COMMANDS = {
    "run": ("appliance.commands.run", "run a gateway's part of a topology"),
    "reload": ("appliance.commands.reload", "let running gateways apply their changed files"),
    "check": ("appliance.commands.check", "find what is wrong with a topology, before it starts"),
    "diff": ("appliance.commands.diff", "show what a reload would change, from one topology to another"),
    "install": ("appliance.commands.install", "make a gateway a hardened service of systemd"),
    "uninstall": ("appliance.commands.uninstall", "take back what install wrote"),
    "show": ("appliance.commands.show", "draw a topology"),
    "explain": ("appliance.commands.explain", "say where a frame would go, and what would stop or delay it"),
    "create": ("appliance.commands.create", "write a topology from answers and what is plugged in"),
    "schema": ("appliance.commands.schema", "print the JSON Schema of topologies, for editors"),
    "completion": ("appliance.commands.completion", "print the completion script of a shell"),
    "demo": ("appliance.commands.demo", "run buses, media and a bridge, without hardware and root"),
    "device": ("appliance.commands.device", "run a raw device: a bus for all who connect, in one line"),
    "broker": ("appliance.commands.broker", "run a TMQ broker: clients publish and subscribe by pattern"),
    "syndicate": ("appliance.commands.syndicate", "run a broker whose clients subscribe by queries"),
    "catalog": ("appliance.commands.catalog", "run a catalog: services register, clients find them by name"),
    "service": ("appliance.commands.service", "run a service that registers with a catalog, to try things"),
    "client": (
        "appliance.commands.client",
        "list the services of a catalog, ask one, or hear what it publishes",
    ),
    "monitor": (
        "appliance.commands.monitor",
        "show how the services of a catalog live, or what passes at a socket of one of them",
    ),
    "find": ("appliance.commands.find", "list what announces itself on the LAN: catalogs, buses, brokers"),
    "query": ("appliance.commands.query", "ask a syndication broker for producers, or the values of a key"),
    "values": ("appliance.commands.values", "show the newest frame of each pattern that a bus remembers"),
    "send": ("appliance.commands.send", "send messages to a bus or any medium"),
    "recv": ("appliance.commands.recv", "show the messages of a bus or any medium"),
    "capture": ("appliance.commands.capture", "record a bus or medium; export captures, or send them again"),
    "traffic": ("appliance.commands.traffic", "send numbered test traffic at a given rate"),
    "top": ("appliance.commands.top", "show what running gateways do now"),
    "key": ("appliance.commands.key", "make a key that the gateways of a system share"),
    "tokens": ("appliance.commands.tokens", "show the tokens of names, and names that share one"),
    "pipeline": ("appliance.commands.pipeline", "run any job on captures: also tokens, watch, serve"),
}


# library -> the extra of this distribution that installs it; links name theirs when they open
EXTRAS = {
    "psutil": "demo",
    "rich": "demo",
    "pyspark": "pipeline",
    "pyarrow": "capture",
    "msgpack": "syndication",
}


def missing(error: ModuleNotFoundError) -> str:
    """Return what to install. Raises `error` again if no extra has the library: then it is our defect."""
    library = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(library)
    if extra is None:
        raise error
    return lacking("this command", library, extra)


class Version(argparse.Action):
    """An option that looks the version up only on demand: this takes longer than all other imports."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"buscoupler {version('buscoupler')}")
        parser.exit()


def commands(selected: str | None = None) -> dict[str, tuple[str, str]]:
    """Return all commands with those of jobs, but without the latter if another command is selected."""
    if selected in COMMANDS:
        return COMMANDS
    from pipeline import jobs

    found = [jobs.find(selected)] if selected in jobs.NAMES else jobs.every()
    return COMMANDS | {job.name: (COMMANDS["pipeline"][0], job.help) for job in found if job.is_command}


def parser(selected: str | None = None) -> Parser:
    """Return the parser. Import only the selected command's module, so that the others take no time."""
    top = Parser(prog="buscoupler", description="A bus and bridge appliance for gateways.")
    top.set_defaults(verbose=False, log=None, described=described)
    top.add_argument("--version", action=Version, nargs=0, help="show the version and exit")
    parsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, text) in commands(selected).items():
        sub = parsers.add_parser(name, help=text, description=text)
        if name == selected:
            import_module(module).arguments(sub)
    return top


def described() -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yield all commands, with the help and the parser of each."""
    for name, (_, text) in commands().items():
        for action in parser(name)._actions:  # noqa: SLF001 - argparse has no other way to its parsers
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                yield name, text, action.choices[name]


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Return the exit status: 0, 1 (a problem was found), 2 (wrong use), 128 + a signal."""
    streams.prepare()
    with interrupts.raised(), permissions.limited():
        try:
            try:
                return _command(sys.argv[1:] if arguments is None else arguments)
            finally:
                sys.stdout.flush()
        except KeyboardInterrupt as stop:
            return interrupts.status_of(stop)
        except (BusError, OSError, UnicodeError, ModuleNotFoundError) as error:
            return _fail(error)


def _command(words: list[str]) -> int:
    selected = _selected(words)
    options = parser(selected).parse_args(words)
    log.start(options.log, options.verbose)
    return int(import_module(commands(selected)[options.command][0]).run(options))


def _selected(words: list[str]) -> str | None:
    """Return the command: the first word that is no option, and not the form of the log."""
    plain = (
        word for before, word in pairwise(["", *words]) if before != "--log" and not word.startswith("-")
    )
    return next(plain, None)


def _fail(error: Exception) -> int:
    """Print an error in one line, without the stack: with `-v` the log has that. Return the exit status."""
    text = missing(error) if isinstance(error, ModuleNotFoundError) else _words_of(error)
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
    return words_of(error)
