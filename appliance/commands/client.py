"""`buscoupler client`: list the services of a catalog, or ask one of them."""

import argparse
import json
from collections.abc import Iterable, Iterator

from appliance.commandline.arguments import above_zero, checked_word, free_text, whole_above_zero
from appliance.commands.service import catalog_argument
from appliance.probe.words import columns
from appliance.process.running import run_loop
from bus.text import plain, plain_lines
from devices.dbp.nodes.client import TIMEOUT_S, Client
from devices.dbp.nodes.listing import Listed
from devices.dbp.nodes.requests import check_asked
from devices.dbp.zeromq.limits import Limits

_MESSAGE_BYTES = 8 << 20  # of an answer or a publication: its service has a bound of its own


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="show this service only, or ask it")
    parser.add_argument(
        "word",
        nargs="?",
        type=checked_word(check_asked),
        metavar="WORD",
        help="send it this request, like echo, time or ping",
    )
    parser.add_argument("data", nargs="*", type=free_text, metavar="TEXT", help="the frames of the request")
    client_arguments(parser)
    parser.add_argument(
        "--subscribe", type=free_text, metavar="TOPIC", help="show what NAME publishes and begins with TOPIC"
    )
    parser.add_argument(
        "--count", type=whole_above_zero, metavar="N", help="stop after N messages of --subscribe"
    )
    parser.set_defaults(fail=parser.error)


def client_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every client of a catalog."""
    catalog_argument(parser)
    parser.add_argument(
        "--timeout", type=above_zero, default=TIMEOUT_S, metavar="S",
        help=f"wait so long for an answer ({TIMEOUT_S:g})",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="write one JSON object a line")


def run(options: argparse.Namespace) -> int:
    if options.subscribe is not None and (options.word or not options.name):
        options.fail("--subscribe is of a NAME, and without a request")
    if options.subscribe is None and options.count:
        options.fail("--count is of --subscribe")
    return run_loop(_run(options))


async def _run(options: argparse.Namespace) -> int:
    limits = Limits(message_bytes=_MESSAGE_BYTES)
    async with Client(options.catalog, timeout_s=options.timeout, limits=limits) as client:
        if options.subscribe is not None:
            await _hear(client, options)
        elif options.word:
            body = [text.encode() for text in options.data]
            for frame in await client.ask(options.name, options.word, *body):
                text = frame.decode(errors="backslashreplace")
                print(json.dumps({"data": text}) if options.json else plain_lines(text))
        else:
            found = [await client.find(options.name)] if options.name else (await client.services()).values()
            for line in map(_told, found) if options.json else _table(found):
                print(line)
    return 0


async def _hear(client: Client, options: argparse.Namespace) -> None:
    count = 0
    async for topic, data in client.subscribe(options.name, options.subscribe):
        text = data.decode(errors="backslashreplace")
        print(
            json.dumps({"topic": topic, "data": text}) if options.json else plain(f"{topic}  {text}"),
            flush=True,
        )
        count += 1
        if count == options.count:
            return


def _told(one: Listed) -> str:
    return json.dumps({"name": one.name, **one.fields})


def _table(found: Iterable[Listed]) -> Iterator[str]:
    """Yield a line for each service: its name, its addresses and its function."""
    return columns([(plain(one.name), _addresses(one), plain(one.function)) for one in found])


def _addresses(one: Listed) -> str:
    return " ".join(f"{plain(name)}={plain(host)}:{port}" for name, (host, port) in one.interfaces.items())
