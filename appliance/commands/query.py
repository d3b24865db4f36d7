"""`buscoupler query URL QUERY`: ask a syndication broker for producers, or for the values of a key."""

import argparse
import asyncio
import logging
from collections.abc import Iterator
from contextlib import aclosing
from json import dumps
from math import inf
from typing import Any

from appliance.commandline.arguments import above_zero, argument, free_text
from appliance.probe.values import jsonable, words_of_value
from appliance.process.interrupts import status_of
from appliance.process.running import run_loop
from appliance.process.serve import Stop
from bus.errors import LinkError
from devices.syndication.answers import ReceivedPublication
from devices.syndication.caller import RefusedQuery, Update, broker_at, follow

log = logging.getLogger("buscoupler")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "url", type=argument(broker_at), metavar="URL", help="a syndication broker: tcp://HOST:PORT"
    )
    parser.add_argument(
        "query", type=free_text, metavar="QUERY",
        help="like 'Room = \"410\"' or 'select distinct Room where has Unit'; '' is all producers",
    )  # fmt: skip
    parser.add_argument(
        "--follow", action="store_true", help="go on with what changes, and with what producers publish"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON value a line")
    parser.add_argument(
        "--timeout", type=above_zero, default=10.0, metavar="S", help="wait S seconds for an answer (10)"
    )
    parser.set_defaults(fail=parser.error)


def run(options: argparse.Namespace) -> int:
    try:
        return run_loop(query(options))
    except RefusedQuery as error:
        if error.wrong:
            options.fail(str(error))
        raise


async def query(options: argparse.Namespace) -> int:
    """Print the answer to the query, and with `--follow` all changes after it. Return the exit status.

    A signal is the normal end of `--follow`, once the answer was printed.
    """
    stop, page = Stop(asyncio.get_running_loop()), _Page(options.follow, options.json)
    tasks = work, _ = asyncio.create_task(_show(options, page)), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
            return 0
        return 0 if options.follow and page.begun else status_of(stop.number)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _show(options: argparse.Namespace, page: "_Page") -> None:
    async with aclosing(follow(options.url, options.query, options.timeout, _say_lost)) as answers:
        async for said in answers:
            page.show(said)
            if not options.follow:
                return


def _say_lost(error: LinkError) -> None:
    log.warning("%s; dialling again", error)


class _Page:
    """The printed form of updates, a line for each item. `begun`: the answer has been printed."""

    def __init__(self, follow: bool, as_json: bool) -> None:
        self.begun = False
        self._follow, self._as_json = follow, as_json

    def show(self, said: Update) -> None:
        lines = list(self._lines(said))
        if lines:
            print("\n".join(lines), flush=True)
        self.begun = True

    def _lines(self, said: Update) -> Iterator[str]:
        if isinstance(said, ReceivedPublication):
            yield self._publication(said)
        elif self._follow:
            yield from (self._change("+", "new", item) for item in sorted(said.new, key=_place))
            yield from (self._change("-", "gone", item) for item in sorted(said.gone, key=_place))
        else:
            yield from map(self._item, sorted(said.new, key=_place))

    def _item(self, item: Any) -> str:
        return dumps(jsonable(item)) if self._as_json else words_of_value(item)

    def _change(self, sign: str, name: str, item: Any) -> str:
        return dumps({name: jsonable(item)}) if self._as_json else f"{sign} {words_of_value(item)}"

    def _publication(self, heard: ReceivedPublication) -> str:
        if self._as_json:
            return dumps({key: jsonable(part) for key, part in heard._asdict().items()})
        metadata = f" {words_of_value(heard.metadata)}" if heard.metadata else ""
        return f"= {words_of_value(heard.id)} {words_of_value(heard.value)}{metadata}"


def _place(item: Any) -> tuple[float, str]:
    """Return the sort key of an item: numbers first, by size, then text."""
    is_number = isinstance(item, int | float) and not isinstance(item, bool)
    return (item if is_number else inf), words_of_value(item)
