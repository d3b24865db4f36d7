"""`buscoupler top`: show running gateways: links, rates of each pipe, drops, and the latest events."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from appliance.ledger import reasons
from appliance.probe.words import above_zero
from appliance.status.places import Status, ask, runtime_directory, sockets

_EVENTS = 8
_HOME_AND_CLEAR = "\x1b[H\x1b[J"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run-directory", type=Path, metavar="DIR", help="the --run-directory of the gateway"
    )
    parser.add_argument("--once", action="store_true", help="show once, with totals instead of rates")
    parser.add_argument("--json", action="store_true", help="print one JSON document for each process, once")
    parser.add_argument(
        "--seconds", type=above_zero, default=1.0, metavar="N", help="refresh every N seconds (1)"
    )


def run(options: argparse.Namespace) -> int:
    statuses = look(options.run_directory)
    if not statuses:
        where = options.run_directory or runtime_directory()
        print(
            f"buscoupler top: no gateway of this user runs in {where}: start one, or give --run-directory",
            file=sys.stderr,
        )
        return 1
    if options.json:
        for status in statuses.values():
            print(json.dumps(status), flush=True)
    elif options.once or not sys.stdout.isatty():
        print("\n".join(page(status, None) for status in statuses.values()), flush=True)
    else:
        watch(options, statuses)
    return 0


def look(directory: Path | None) -> dict[Path, Status]:
    """Return the status of every process that answers, by the path of its socket."""
    statuses = dict[Path, Status]()
    for path in sockets(directory):
        with suppress(OSError, ValueError):
            statuses[path] = ask(path)
    return statuses


def watch(options: argparse.Namespace, before: dict[Path, Status]) -> None:
    """Redraw until interrupted, or until no process answers."""
    while before:
        time.sleep(max(0.1, options.seconds))
        now = look(options.run_directory)
        pages = [page(status, before.get(path)) for path, status in now.items()]
        print(_HOME_AND_CLEAR + "\n".join(pages), flush=True)
        before = now


def page(status: Status, before: Status | None) -> str:
    """Return one process as text: with rates if there is an earlier status, else with totals."""
    old = dict(_pipes(before)) if before else {}
    span_s = (status["time_ns"] - before["time_ns"]) / 1e9 if before else 1.0
    unit = "/s" if before else ""
    lines = [f"{status['topology']} on {status['gateway']}"]
    lines += [f"  {_link(link)}" for link in status["links"]]
    lines.append(f"  {'pipe':48} {'in' + unit:>10} {'out' + unit:>10} {'queued':>8}  dropped")
    for name, pipe in _pipes(status):
        rates = (f"{_rate(pipe, old.get(name), f, span_s):10.0f}" for f in ("received", "sent"))
        lines.append(f"  {name[:48]:48} {' '.join(rates)} {pipe['queued']:8}  {_drops(pipe)}")
    lines += [
        f"  disconnected because it closes a loop: {name}" for hub in status["hubs"] for name in hub["cuts"]
    ]
    lines += [f"  {_event(event)}" for event in status["events"][-_EVENTS:]]
    return "\n".join(lines)


def _pipes(status: Status) -> Iterator[tuple[str, dict[str, Any]]]:
    for hub in status["hubs"]:
        for pipe in hub["pipes"]:
            yield f"{hub['name']} | {pipe['name']}", pipe


def _rate(pipe: dict[str, Any], old: dict[str, Any] | None, field: str, span_s: float) -> float:
    return float(pipe[field] - (old[field] if old else 0)) / span_s


def _drops(pipe: dict[str, Any]) -> str:
    text = reasons(pipe["dropped"])
    return text if pipe["balance"] == 0 else f"{text} DOES NOT BALANCE"


def _link(link: dict[str, Any]) -> str:
    words = [str(link[name]) for name in ("state", "condition", "fault") if link.get(name)]
    return f"{link['name']}: {', '.join(words)}" if words else str(link["name"])


def _event(event: dict[str, Any]) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(event["time_ns"] / 1e9))
    counts = ", ".join(f"{name} {count}" for name, count in event["counts"].items())
    return f"{clock} {event['kind']}: {event['source']}: {event['cause']}" + (
        f" ({counts})" if counts else ""
    )
