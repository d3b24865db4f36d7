"""The command line: one table of commands, each in its own module, imported when it is used."""

import argparse
import logging
import sys
from importlib import import_module

from bus.errors import BusError

# name -> (module, one line of help); each module has `arguments(parser)` and `run(options) -> int`.
COMMANDS = {
    "run": ("appliance.commands.run", "run a gateway's part of a topology"),
    "check": ("appliance.commands.check", "find what is wrong with a topology, before it starts"),
    "show": ("appliance.commands.show", "draw a topology"),
    "demo": ("appliance.commands.demo", "the whole thing, with no hardware and no root"),
    "device": ("appliance.commands.device", "a raw device: joins everyone who connects, in one line"),
    "broker": ("appliance.commands.broker", "a TMQ broker: clients publish and subscribe by pattern"),
    "send": ("appliance.commands.send", "send messages to a bus or any medium"),
    "recv": ("appliance.commands.recv", "show what comes from a bus or any medium"),
    "capture": ("appliance.commands.capture", "record any bus or medium; captures as pcapng, or put back"),
    "traffic": ("appliance.commands.traffic", "paced, numbered test traffic to any of these"),
    "top": ("appliance.commands.top", "what running gateways do now"),
    "tokens": ("appliance.commands.tokens", "the tokens of names, and names that share one"),
    "pipeline": ("appliance.commands.pipeline", "all jobs on captures: also tokens, watch, serve"),
}


# library -> extra of this distribution that brings it; links name their own when they open
EXTRAS = {"psutil": "demo", "rich": "demo", "pyspark": "pipeline", "pyarrow": "pipeline"}


def missing(error: ModuleNotFoundError) -> str:
    """What to install. Raises `error` again if it is no library of an extra: then it is our mistake."""
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    if extra is None:
        raise error
    return f"this needs the package {error.name}: pip install 'buscoupler[{extra}]'"


class Version(argparse.Action):
    """Looks the version up only when asked: that takes longer than all other imports."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"buscoupler {version('buscoupler')}")
        parser.exit()


def commands(selected: str | None = None) -> dict[str, tuple[str, str]]:
    """All commands, with the jobs that are some; without these if another one is selected."""
    if selected in COMMANDS:
        return COMMANDS
    from pipeline import jobs

    found = [jobs.find(selected)] if selected in jobs.NAMES else jobs.every()
    return COMMANDS | {job.name: (COMMANDS["pipeline"][0], job.help) for job in found if job.is_command}


def parser(selected: str | None = None) -> argparse.ArgumentParser:
    """The parser; only the selected command's module is imported, so that others cost nothing."""
    top = argparse.ArgumentParser(prog="buscoupler", description="A bus and bridge appliance for gateways.")
    top.add_argument("--version", action=Version, nargs=0, help="show the version, and nothing else")
    top.add_argument("-v", "--verbose", action="store_true", help="also log what is normal")
    parsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, text) in commands(selected).items():
        sub = parsers.add_parser(name, help=text, description=text)
        if name == selected:
            import_module(module).arguments(sub)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Exit status 0, 1 (it found a problem), 2 (wrong use)."""
    words = sys.argv[1:] if arguments is None else arguments
    selected = next((word for word in words if not word.startswith("-")), None)
    try:
        options = parser(selected).parse_args(words)
        level = logging.INFO if options.verbose else logging.WARNING
        logging.basicConfig(level=level, format="%(levelname)s %(message)s", stream=sys.stderr)
        return int(import_module(commands(selected)[options.command][0]).run(options))
    except BusError as error:
        print(f"buscoupler: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        print(f"buscoupler: {missing(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:  # the reader of our output is gone: nobody is left to tell
        sys.stderr.close()
        return 0
