"""`buscoupler monitor`: show the states of services in a catalog, or the messages at one's socket."""

import argparse
import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from datetime import datetime

from appliance.commandline.arguments import above_zero, whole_above_zero
from appliance.commands.client import client_arguments
from appliance.probe.words import columns, shown
from appliance.process.running import run_loop
from bus.text import plain
from devices.dbp.catalog.entry import ROUTER
from devices.dbp.monitor.wire import Life, Passed
from devices.dbp.nodes.client import Client
from devices.dbp.nodes.watching import lives, mirrored


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="show what passes at a socket of this service, a line each"
    )
    client_arguments(parser)
    parser.add_argument(
        "--of-catalog", action="store_true", help="show what passes at the socket of the catalog itself"
    )
    parser.add_argument("--interface", metavar="NAME", help=f"the socket: {ROUTER}, pub ... ({ROUTER})")
    parser.add_argument(
        "--count", type=whole_above_zero, metavar="N", help="stop after N messages, or N looks"
    )
    parser.add_argument(
        "--seconds", type=above_zero, default=1.0, metavar="S", help="without NAME, look every S seconds (1)"
    )
    parser.set_defaults(fail=parser.error)


def run(options: argparse.Namespace) -> int:
    if options.name and options.of_catalog:
        options.fail("write NAME or --of-catalog")
    if options.interface is not None and not (options.name or options.of_catalog):
        options.fail("--interface is of a NAME, or --of-catalog")
    return run_loop(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with Client(options.catalog, timeout_s=options.timeout) as client:
        if options.name is None and not options.of_catalog:
            await _watch(client, options)
        else:
            await _show(client, None if options.of_catalog else options.name, options)
    return 0


async def _watch(client: Client, options: argparse.Namespace) -> None:
    """Print the states of all services: once, or `--count` times."""
    for look in range(options.count or 1):
        if look:
            await asyncio.sleep(options.seconds)
        found = await lives(client)
        for line in (_as_json(*one) for one in found.items()) if options.json else _table(found):
            print(line, flush=True)


def _as_json(name: str, life: Life) -> str:
    return json.dumps({"name": name, **life._asdict()})


def _table(found: dict[str, Life]) -> Iterator[str]:
    rows = [("service", "state", "silent for", "host", "")]
    rows += [(plain(name), *_words(life)) for name, life in sorted(found.items())]
    return columns(rows if found else [])


def _words(life: Life) -> tuple[str, str, str, str]:
    how = "beats every" if life.beats else "is asked every"
    silence = f"{life.silence_ms / 1000:.3f} s"
    return plain(life.state), silence, plain(life.host), f"{how} {life.interval_ms / 1000:g} s"


async def _show(client: Client, name: str | None, options: argparse.Namespace) -> None:
    count = 0
    async with aclosing(mirrored(client, name, options.interface or ROUTER)) as passing:
        async for passed in passing:
            print(_record(passed) if options.json else _line(passed), flush=True)
            count += 1
            if count == options.count:
                return


def _line(passed: Passed) -> str:
    at = datetime.fromtimestamp(passed.time_s).strftime("%H:%M:%S.%f")
    frames = " | ".join(map(shown, passed.frames))
    return f"{at} {passed.direction:3} {plain(passed.host) or '-'} {frames}"


def _record(passed: Passed) -> str:
    return json.dumps(passed._asdict() | {"frames": [frame.hex() for frame in passed.frames]})
