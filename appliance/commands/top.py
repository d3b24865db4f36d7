"""`buscoupler top`: show the processes of this machine, or gateways over the network.

It shows links, rates, drops, roles, leases and events.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from appliance.commandline.arguments import above_zero, page_url
from appliance.local.asking import owner_of
from appliance.local.places import is_of_program, runtime_directories, user_of
from appliance.process.streams import terminal
from appliance.status.client import ask_all, status_sockets
from appliance.status.shape import Status
from appliance.status.silent import ENDED, UNREADABLE, GatewayName, name_of, silent
from appliance.status.terminal import head, key_of, pages
from appliance.top.keys import Keyboard
from appliance.top.screen import Screen
from bus.errors import words_of

_HOME_AND_CLEAR = "\x1b[H\x1b[J"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "urls", nargs="*", type=page_url, metavar="URL",
        help="status pages to ask instead, such as http://10.0.0.11:9943; the token is in BUSCOUPLER_TOKEN",
    )  # fmt: skip
    parser.add_argument("--tls-ca", metavar="FILE", help="trust this authority (https://)")
    parser.add_argument(
        "--run-directory", type=Path, metavar="DIR", help="the --run-directory of the gateway"
    )
    parser.add_argument("--once", action="store_true", help="show once, with totals instead of rates")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document a line for each process, once"
    )
    parser.add_argument(
        "--follow", action="store_true", help="with --json: again at each refresh, until stopped"
    )
    parser.add_argument(
        "--seconds", type=above_zero, default=1.0, metavar="N", help="refresh every N seconds (1)"
    )
    parser.set_defaults(fail=parser.error)


def refuse_idle(options: argparse.Namespace) -> None:
    """Refuse options that would do nothing beside the others."""
    if options.follow and not options.json:
        options.fail("--follow needs --json")
    if options.follow and options.once:
        options.fail("--once or --follow")
    if options.run_directory is not None and options.urls:
        options.fail("--run-directory or URL: a page is asked over the network")
    if options.tls_ca is not None and not any(url.startswith("https:") for url in options.urls):
        options.fail("--tls-ca needs a URL that begins with https://")


def run(options: argparse.Namespace) -> int:
    refuse_idle(options)
    statuses, left = statuses_of(options)
    if options.json:
        say_json(options, statuses)
    elif options.once or not sys.stdout.isatty():
        print(pages(statuses, {}, list(silent(statuses, left, {})), columns()), flush=True)
    elif statuses:
        with suppress(KeyboardInterrupt):  # its normal end
            watch(options, statuses)
    if statuses:
        return 0
    if options.urls:
        return 1
    where = options.run_directory or ", ".join(map(str, runtime_directories())) or "this user's directories"
    print(
        f"buscoupler top: nothing answers in {where}: start a gateway, a device or a broker, "
        "or give --run-directory",
        file=sys.stderr,
    )
    return 1


def statuses_of(options: argparse.Namespace) -> tuple[list[Status], dict[GatewayName, str]]:
    """Return the statuses that were asked for, and why other gateways have none. Print pages that fail."""
    if options.urls:
        return page_statuses(options.urls, options.tls_ca)
    return local_statuses(options.run_directory)


def page_statuses(urls: list[str], ca_file: str | None) -> tuple[list[Status], dict[GatewayName, str]]:
    """Return the statuses of some pages, each with the address that was asked (`at`). Print those that fail.

    At an address may be another gateway than the user thinks: the port of a page goes to who is first.
    """
    from appliance.status.remote import ask_page  # late: it loads http.client

    statuses = list[Status]()
    for url in urls:
        try:
            statuses.append(ask_page(url, ca_file) | {"at": url})
        except (OSError, ValueError) as error:
            why = f"{url}: {words_of(error)}" if isinstance(error, OSError) else str(error)
            print(f"buscoupler top: {why}", file=sys.stderr)
    return statuses, {}


def say_json(options: argparse.Namespace, statuses: list[Status]) -> None:
    """Print a line for each process; with --follow again at each refresh, until none answers."""
    with suppress(KeyboardInterrupt):
        while statuses:
            for status in statuses:
                print(json.dumps(status), flush=True)
            if not options.follow:
                return
            time.sleep(max(0.1, options.seconds))
            statuses, _ = statuses_of(options)


def local_statuses(directory: Path | None) -> tuple[list[Status], dict[GatewayName, str]]:
    """Return the status of every process that answers, and why other gateways have none."""
    statuses, left = list[Status](), dict[GatewayName, str]()
    for path, found in ask_all(status_sockets(directory)):
        name = GatewayName(path.parent.parent.name, path.parent.name)
        if isinstance(found, ValueError):
            left[name] = UNREADABLE
        elif not isinstance(found, OSError):
            user = "" if directory is not None else user_of(owner_of(path))
            statuses.append(found | ({"user": user} if user else {}))
        # a directory of the user's choice does not tell whose it is
        elif directory is None and not is_of_program(path):
            left[name] = ENDED
    return statuses, left


def columns() -> int | None:
    """Return the width of the terminal; None for a file or pipe, in which nothing is cut."""
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else None


def watch(options: argparse.Namespace, now: list[Status]) -> None:
    """Redraw until `q`, an interrupt, or until no process answers. Gateways that have gone stay as silent."""
    screen, keyboard = Screen("NO_COLOR" not in os.environ), Keyboard()
    before, gone, seen = list[Status](), list[str](), dict[GatewayName, int]()
    with keyboard.single():
        while now and not screen.is_done:
            seen |= {name_of(status): status["time_ns"] for status in now if status["gateway"]}
            end_s = time.monotonic() + max(0.1, options.seconds)
            _show(screen, keyboard, end_s, partial(draw, screen, now, before, gone))
            if not screen.is_done:
                before, (now, left) = now, statuses_of(options)
                gone = list(silent(now, left, seen))
    print(file=terminal())


def _show(screen: Screen, keyboard: Keyboard, end_s: float, redraw: Callable[[], None]) -> None:
    """Draw, and again after each key, until it is `end_s` or `q` is pressed."""
    redraw()
    while not screen.is_done and (left_s := end_s - time.monotonic()) > 0:
        for key in (keys := keyboard.wait(left_s)):
            screen.press(key)
        if keys and not screen.is_done:
            redraw()


def draw(screen: Screen, now: list[Status], before: list[Status], gone: list[str]) -> None:
    """Draw the whole screen: rates for processes that have an earlier status, else totals."""
    columns, rows = shutil.get_terminal_size((80, 24))
    text = pages(now, {key_of(status): status for status in before}, gone, columns, screen.order)
    shown = screen.shown(head(now, gone), text, columns, rows)
    print(f"{_HOME_AND_CLEAR}{shown}", end="", file=terminal(), flush=True)
