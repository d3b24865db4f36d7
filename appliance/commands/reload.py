"""`buscoupler reload [FILE]`: let running gateways apply their files again, and show what changed."""

import argparse
import os
import sys
from dataclasses import asdict
from json import dumps
from pathlib import Path

from appliance.local.places import runtime_directories
from appliance.probe.words import above_zero
from appliance.reload.client import reload, reload_sockets
from appliance.reload.outcome import Outcome, Request


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="only gateways that run this topology; all by default"
    )
    parser.add_argument("--gateway", metavar="NAME", help="only this gateway")
    parser.add_argument(
        "--run-directory", type=Path, metavar="DIR", help="the --run-directory of the gateway"
    )
    parser.add_argument(
        "--timeout", type=above_zero, default=30.0, metavar="N", help="wait N seconds for each answer (30)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document for each process")


def run(options: argparse.Namespace) -> int:
    file = None if options.file is None else os.path.realpath(options.file)
    request = Request(file, options.gateway)
    found, good = list[Outcome](), True
    for path in reload_sockets(options.run_directory):
        try:
            outcome = reload(path, request, options.timeout)
        except (OSError, ValueError) as error:
            good = False
            _complain(f"{path}: no answer: {error}")
            continue
        if outcome is not None:
            found.append(outcome)
            _show(outcome, options.json)
    meant = [outcome for outcome in found if outcome.meant]
    if not meant and good:
        _complain(_nobody(options, found))
    return 0 if good and meant and all(outcome.good for outcome in meant) else 1


def _show(outcome: Outcome, as_json: bool) -> None:
    if not outcome.meant:
        return
    if as_json:
        print(dumps(asdict(outcome)), flush=True)
    elif outcome.error:
        _complain(f"{outcome.title} goes on as before; its file was refused:\n{outcome.error}")
    else:
        lines = [*outcome.changes, *outcome.failed] or ["nothing differs"]
        print("\n".join([f"{outcome.title}:", *(f"  {line}" for line in lines)]), flush=True)


def _nobody(options: argparse.Namespace, others: list[Outcome]) -> str:
    """Return why there is nobody to ask, with what runs instead."""
    wanted = [f"gateway {options.gateway}"] if options.gateway else ["gateway"]
    wanted += [f"of {options.file}"] if options.file else []
    where = options.run_directory or ", ".join(map(str, runtime_directories())) or "this user's directories"
    running = "; ".join(f"{one.title} from {one.file}" for one in others)
    hint = f"running: {running}" if running else "start one with `buscoupler run`, or give --run-directory"
    return f"no running {' '.join(wanted)} in {where}: {hint}"


def _complain(text: str) -> None:
    print(f"buscoupler reload: {text}", file=sys.stderr, flush=True)
