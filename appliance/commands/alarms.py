"""`buscoupler alarms [ack NAME | rules FILE]`: show alarms, acknowledge one, or make rules for Prometheus."""

import argparse
import json
import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from appliance.alarms.asking import acknowledge, alarms_sockets
from appliance.status.client import ask_all, status_sockets
from appliance.status.shape import Status
from appliance.status.terminal import alarms as lines_of
from appliance.status.terminal import printable
from bus.errors import words_of

_ANSWER_S = 5.0


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    ack = actions.add_parser("ack", help="acknowledge an alarm at the gateways that run here")
    rules = actions.add_parser("rules", help="print alert rules for Prometheus")
    ack.add_argument("name", metavar="NAME", help="the alarm")
    ack.add_argument("--of", default="", metavar="PATTERN", help="only of this pattern or link, as shown")
    ack.add_argument("--by", metavar="NAME", help="who acknowledges; by default this user")
    rules.add_argument("file", metavar="FILE", help="the topology")
    for one, default in ((parser, None), (ack, argparse.SUPPRESS)):
        one.add_argument(
            "--run-directory", type=Path, metavar="DIR", default=default,
            help="the --run-directory of the gateway",
        )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON document for each alarm")
    parser.set_defaults(fail=parser.error)


def run(options: argparse.Namespace) -> int:
    if options.json and options.action is not None:
        options.fail(f"--json is of the list, without {options.action}")
    if options.run_directory is not None and options.action == "rules":
        options.fail("rules come from FILE: they need no --run-directory")
    return {"ack": _ack, "rules": _rules, None: _show}[options.action](options)


def _show(options: argparse.Namespace) -> int:
    statuses = list(_statuses(options.run_directory))
    shown = [(status, status["alarms"]) for status in statuses if status.get("alarms")]
    for status, rows in shown:
        if options.json:
            print("\n".join(json.dumps({"gateway": status["gateway"], **row}) for row in rows))
        else:
            print(printable("\n".join([f"{status['topology']} on {status['gateway']}:", *lines_of(status)])))
    if not shown:
        _complain("no running gateway of this machine has alarms")
    return 0 if shown and not any(_is_raised(row) for _, rows in shown for row in rows) else 1


def _is_raised(row: dict[str, Any]) -> bool:
    return row["stage"] in ("raised", "acknowledged")


def _statuses(directory: Path | None) -> Iterator[Status]:
    for path, found in ask_all(status_sockets(directory)):
        if isinstance(found, dict):
            yield found
        elif not isinstance(found, ConnectionRefusedError | FileNotFoundError):  # it has ended
            _complain(f"{path}: no answer: {words_of(found)}")


def _ack(options: argparse.Namespace) -> int:
    by, known, done = options.by or _user(), False, list[str]()
    for path in alarms_sockets(options.run_directory):
        try:
            found = acknowledge(path, options.name, options.of, by, _ANSWER_S)
        except (OSError, ValueError) as error:
            _complain(f"{path}: no answer: {words_of(error)}")
            continue
        known, done = known or found is not None, [*done, *(found or ())]
    for of in dict.fromkeys(done):
        print(printable(f"{options.name}: {of}: acknowledged by {by}"))
    if not done:
        what = "nothing of it is raised and not acknowledged" if known else "no running gateway here has it"
        _complain(f"alarm {options.name}: {what}")
    return 0 if done else 1


def _user() -> str:
    """Return who runs the command, also behind sudo."""
    try:
        return os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _rules(options: argparse.Namespace) -> int:
    from appliance.alarms.rules import rules
    from topologies.loading.loader import load

    topology = load(options.file)
    if not topology.alarms:
        _complain(f"{options.file} has no alarms")
        return 1
    print(rules(topology.name, topology.alarms))
    return 0


def _complain(text: str) -> None:
    print(f"buscoupler alarms: {text}", file=sys.stderr, flush=True)
