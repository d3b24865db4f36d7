"""`buscoupler run FILE`: run a gateway's part of a topology in one process, or `--only` some of it."""

import argparse
import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from appliance.alarms.asking import alarms_responder, alarms_socket
from appliance.commandline.arguments import above_zero
from appliance.compose import Appliance
from appliance.explain.responder import trace_responder, trace_socket
from appliance.local.places import runtime_directory
from appliance.local.responder import Responder, WithResponders
from appliance.process.serve import serve
from appliance.reload.client import reload_socket
from appliance.reload.reloader import Reloader
from appliance.reload.responder import reload_responder
from appliance.rollout.keeper import Keeper
from appliance.status.client import status_socket
from appliance.status.ending import ended, last_ledger
from appliance.status.responder import status_responder
from bus.errors import words_of
from bus.machine.aside import within
from bus.machine.permissions import make_private
from topologies.findings import Finding, InvalidTopology
from topologies.loading.loader import load
from topologies.model import Topology, gateway_here
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import Wiring, wired

log = logging.getLogger("buscoupler")
TEST_S = 10.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="the topology; - is standard input, which no reload can read again"
    )
    parser.add_argument(
        "--gateway", metavar="NAME",
        help="the name of this gateway; by default that of this host, or the only one in the file",
    )  # fmt: skip
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME",
        help="run only this broker, bus, bridge or device (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--run-directory",
        type=Path,
        metavar="DIR",
        help="directory of the local sockets: those of status and reload, and between parts of one gateway",
    )
    parser.add_argument(
        "--test", action="store_true",
        help="run for some time, print what crossed each link, and stop: status 0 if something did, else 1",
    )  # fmt: skip
    parser.add_argument("--seconds", type=above_zero, metavar="N", help="with --test: run for N seconds (10)")
    parser.add_argument(
        "--real-time", action="store_true",
        help="real-time priority for the event loop, if the system allows it: leases can be shorter",
    )  # fmt: skip
    parser.set_defaults(fail=parser.error)


def run(options: argparse.Namespace) -> int:
    if options.seconds is not None and not options.test:
        options.fail("--seconds needs --test")
    appliance, directory = within(lambda: prepared(options))
    reloader = Reloader(appliance, options.file, checked_wiring, options.only)

    def announce() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.on_signal)
        print("\n".join(_announced(appliance)), flush=True)

    service = WithResponders(appliance, *_responders(appliance, directory, reloader, options.only))
    if options.test:
        from appliance.status.trial import not_up, say_outcome

        seconds = options.seconds or TEST_S
        return serve(
            service,
            announce,
            lambda: partial(
                say_outcome, ended(appliance.hubs()), [*not_up(appliance.rows())], appliance.labels()
            ),
            seconds,
            options.real_time,
        )

    return serve(
        service,
        announce,
        lambda: last_ledger(appliance.hubs(), appliance.labels()),
        real_time=options.real_time,
    )


def _responders(
    appliance: Appliance, directory: Path, reloader: Reloader, only: Sequence[str]
) -> tuple[Responder, ...]:
    """Return what answers on local sockets while the gateway runs."""
    return (
        status_responder(directory / status_socket(only), appliance.view()),
        reload_responder(directory / reload_socket(only), reloader),
        alarms_responder(directory / alarms_socket(only), appliance.view()),
        trace_responder(directory / trace_socket(only), appliance, reloader.file, only),
    )


def _announced(appliance: Appliance) -> Iterator[str]:
    """Yield the lines that say what runs, and where."""
    runs = ", ".join(appliance.parts) or "nothing"
    yield f"{appliance.topology.name}: {appliance.gateway} runs {runs}"
    if appliance.page.url:
        yield f"  status page at {appliance.page.url}"
    yield from (f"  {link.url}" for link in appliance.links())


def prepared(options: argparse.Namespace) -> tuple[Appliance, Path]:
    """Return what the options ask for, not yet open, and the directory of its sockets. This reads files."""
    end_trial(options.file)
    wiring = checked_wiring(options.file)
    gateway = options.gateway or gateway_here(wiring.topology, socket.gethostname())
    directory = sockets_directory(options.run_directory, wiring.topology.name, gateway)
    return Appliance(resolve(wiring, gateway), options.only, directory), directory


def end_trial(file: str) -> None:
    """Go back from a roll-out whose trial was not confirmed before this machine started again."""
    keeper = Keeper(file)
    try:
        if by := keeper.end_trial():
            log.warning("%s: went back from the roll-out of %s, which nobody confirmed", file, by)
    except OSError as error:
        text = "%s: the roll-out on trial here was not confirmed, and the file before cannot be put back: %s"
        log.warning(text, file, words_of(error))


def checked(file: str) -> Topology:
    """Load and check a topology; log its warnings. Raises `InvalidTopology` if it has errors."""
    return checked_wiring(file).topology


def checked_wiring(file: str, tell: Callable[[str], None] | None = None) -> Wiring:
    """Load and check a topology as `checked` does, and return the map that has been drawn of it. Tell its
    warnings, a line each."""
    from topologies.checks.checker import check_wired

    wiring = wired(load(file))
    findings: list[Finding] = check_wired(wiring)
    errors = [finding for finding in findings if finding.level == "error"]
    if errors:
        raise InvalidTopology(errors)
    for finding in findings:
        is_warning = finding.level == "warning"
        log.log(logging.WARNING if is_warning else logging.INFO, "%s", finding.logged)
        if is_warning and tell is not None:
            tell(str(finding))
    return wiring


def sockets_directory(given: Path | None, name: str, gateway: str) -> Path:
    """Make and return the directory of the local sockets: whoever can write there can join the buses.

    Raises `PermissionError` if another user can write there.
    """
    return make_private(given or runtime_directory() / name / gateway, runtime_directory())
