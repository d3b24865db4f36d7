"""`buscoupler reload [FILE]`: let running gateways apply their files again, and print the changes."""

import argparse
import os
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from json import dumps
from pathlib import Path

from appliance.commandline.arguments import above_zero
from appliance.local.asking import owner_of
from appliance.local.places import is_ours, no_process_text, user_of
from appliance.reload.client import reload, reload_sockets
from appliance.reload.outcome import Outcome, Request
from bus.errors import words_of


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="only gateways that run this topology; by default all of this user (root: and of services)",
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
    found, silent = list[Outcome](), list[Path]()
    named = file is not None or options.gateway is not None
    patience = _Patience(options.timeout)
    for path in reload_sockets(options.run_directory, others=named):
        try:
            with patience.of(path) as limit_s:
                outcome = reload(path, request, limit_s)
        except (OSError, ValueError) as error:
            silent.append(path)
            _complain(f"{path}: no answer: {words_of(error)}")
            continue
        if outcome is not None:
            found.append(outcome)
            _show(outcome, options.json)
    meant = [outcome for outcome in found if outcome.meant]
    if not meant and not silent:
        others = [f"{one.title} from {one.file}" for one in found]
        text = no_process_text(options.file, options.gateway, options.run_directory, others)
        _complain(text if named else f"{text}{_others()}")
    answered = not any(_is_concerned(path, options, meant) for path in silent)
    return 0 if answered and meant and all(outcome.good for outcome in meant) else 1


class _Patience:
    """The time to wait for answers: `limit_s` for each process, or for all of another user together."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._waited_s = dict[Path, float]()

    @contextmanager
    def of(self, path: Path) -> Iterator[float]:
        """Give the seconds that are left for a process, and take from them what the block needs."""
        owner, start_s = owner_of(path), time.monotonic()
        try:
            yield max(0.1, self._limit_s - self._waited_s.get(owner, 0.0))
        finally:
            if not is_ours(owner):
                self._waited_s[owner] = self._waited_s.get(owner, 0.0) + time.monotonic() - start_s


def _others() -> str:
    """Return a hint for root if gateways of other users run, which are reloaded only by name; else ""."""
    users = sorted({user_of(owner_of(path)) for path in reload_sockets(None)})
    return f"; gateways of {', '.join(users)} run: name one by FILE or --gateway" if users else ""


def _is_concerned(path: Path, options: argparse.Namespace, meant: Collection[Outcome]) -> bool:
    """Return whether the options may mean a process without an answer, by its directory TOPOLOGY/GATEWAY."""
    if options.run_directory is not None:
        return True
    topology = path.parent.parent.name
    same = options.file is None or topology in [outcome.topology for outcome in meant]
    return same and options.gateway in (None, path.parent.name)


def _show(outcome: Outcome, as_json: bool) -> None:
    if not outcome.meant:
        return
    if as_json:
        print(dumps(asdict(outcome)), flush=True)
    elif outcome.error:
        _complain(f"{outcome.title} goes on as before; its file was refused:\n{outcome.error}")
    else:
        lines = [*([*outcome.changes, *outcome.failed] or ["nothing differs"]), *outcome.warnings]
        print("\n".join([f"{outcome.title}:", *(f"  {line}" for line in lines)]), flush=True)


def _complain(text: str) -> None:
    print(f"buscoupler reload: {text}", file=sys.stderr, flush=True)
