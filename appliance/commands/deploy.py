"""`buscoupler deploy FILE`: bring a topology to running gateways over SSH, and back if one is not well."""

import argparse
import getpass
import os
import socket
import sys
from collections.abc import Set
from dataclasses import replace
from functools import partial

from appliance.commandline.arguments import above_zero, whole_above_zero
from appliance.rollout.keeper import hash_of
from appliance.rollout.plan import NOTICE_S, POLL_S, Pace, Rollout
from appliance.rollout.runner import Ssh, go
from appliance.rollout.steps import TEXT_BYTES, Answer, Asked, pack, unpack_asked
from bus.errors import BusError, why_of
from bus.machine.files import read_text
from bus.text import amount


def arguments(parser: argparse.ArgumentParser) -> None:
    where_arguments(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask after the differences were shown")
    parser.add_argument("--force", action="store_true", help="also over files that were changed by hand")
    pace = Pace()
    parser.add_argument(
        "--settle", type=above_zero, default=pace.settle_s, metavar="N",
        help=f"a gateway must be well for N seconds ({pace.settle_s:g}; at least {NOTICE_S:g})",
    )  # fmt: skip
    parser.add_argument(
        "--wait", type=above_zero, default=pace.wait_s, metavar="N",
        help=f"within N seconds after it got the file ({pace.wait_s:g})",
    )  # fmt: skip
    parser.add_argument(
        "--at-once", type=whole_above_zero, default=pace.at_once, metavar="N",
        help=f"after the first gateway, N at once ({pace.at_once})",
    )  # fmt: skip
    parser.add_argument(
        "--step",
        action="store_true",
        help="on a gateway: do the step that standard input has (for deploy itself)",
    )


def where_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says which gateways are meant, and how to reach them."""
    parser.add_argument("file", metavar="FILE", help="the new topology")
    parser.add_argument(
        "--gateway", action="append", metavar="NAME[=HOST]",
        help="this gateway, at HOST for ssh (its address by default); all by default",
    )  # fmt: skip
    parser.add_argument(
        "--to", metavar="PATH",
        help="the file on gateways, with {gateway} for the name (/etc/buscoupler/FILE)",
    )  # fmt: skip
    parser.add_argument("--ssh", default="ssh", metavar="COMMAND", help="ssh and its options (ssh)")
    parser.add_argument(
        "--program", default="buscoupler", metavar="COMMAND", help="buscoupler on gateways (buscoupler)"
    )


def run(options: argparse.Namespace) -> int:
    if options.step:
        return _step(options.file)
    try:
        hosts = hosts_of(options)
        text, way, pace = _text(options.file), way_to(options, hosts), pace_of(options)
    except BusError as error:
        print(f"buscoupler deploy: {error}", file=sys.stderr)
        return 1
    rollout = Rollout(list(hosts), hash_of(text.encode()), pace)
    base = Asked("", "", os.urandom(8).hex(), who(), text, force=options.force)

    def ask(gateway: str, step: str, old: str) -> Answer | str:
        needs_text = step in ("look", "apply")
        asked = replace(base, step=step, gateway=gateway, old=old, text=text if needs_text else "")
        return way.ask(asked)

    faults = set[tuple[str, str]]()
    tell = partial(_tell, faults)
    go(rollout, ask, tell)
    if rollout.phase == "agree":
        for name, lines in rollout.differences():
            print("\n".join([f"{name}:", *(f"  {line}" for line in lines)]), flush=True)
        rollout.agree(options.yes or agreed(len(hosts)))
        go(rollout, ask, tell)
    return _conclude(rollout, len(hosts), faults)


def pace_of(options: argparse.Namespace) -> Pace:
    """Return the times of a roll-out. Raises `BusError` for those in which no gateway can be judged."""
    settle_s, wait_s = options.settle, options.wait
    if settle_s < NOTICE_S:
        raise BusError(
            f"--settle {settle_s:g} is too short: a gateway tells of a dead link after {NOTICE_S:g} s"
        )
    if wait_s < (least_s := settle_s + 2 * POLL_S):
        raise BusError(f"--wait {wait_s:g} is too short to be well for {settle_s:g} s: write {least_s:g}")
    return Pace(settle_s, wait_s, options.at_once)


def hosts_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the host of each gateway that is meant, in order. Raises `BusError`."""
    from topologies.loading.loader import load

    known = {name: one.address for name, one in load(options.file).gateways.items()}
    found = dict[str, str]()
    for word in options.gateway or known:
        name, equals, host = word.partition("=")
        if name not in known:
            raise BusError(f"{options.file} has no gateway {name}; it has {', '.join(known)}")
        if name in found:
            raise BusError(f"--gateway {name} is there twice: it has one host")
        if equals and not host:
            raise BusError(f"--gateway {word}: the host is missing: write {name}=HOST")
        found[name] = host or known[name]
        if found[name].startswith("-"):
            raise BusError(f"{found[name]} is no host")
    return found


def _text(file: str) -> str:
    """Return the text of the new topology. Raises `BusError`."""
    try:
        return read_text(file)
    except (OSError, ValueError) as error:
        raise BusError(f"{file}: {why_of(error)}") from error


def way_to(options: argparse.Namespace, hosts: dict[str, str]) -> Ssh:
    """Return the way to the gateways that options name. Raises `BusError` if two of them share a file."""
    to = options.to or f"/etc/buscoupler/{os.path.basename(options.file)}"
    way = Ssh(hosts, to, options.ssh, options.program)
    if names := way.sharing():
        text = f"{' and '.join(names)} share {way.file_of(names[0])} on {hosts[names[0]]}"
        raise BusError(f"{text}: give each a file of its own, with {{gateway}} in --to")
    return way


def who() -> str:
    """Return who makes a roll-out, and from which machine."""
    return f"{getpass.getuser()} at {socket.gethostname()}"


def agreed(count: int) -> bool:
    """Ask the user whether a file is to be applied to so many gateways. Return whether the answer is yes."""
    if not sys.stdin.isatty():
        print("buscoupler deploy: nothing was changed: say --yes to apply this", file=sys.stderr)
        return False
    try:
        answer = input(f"Apply this to {amount(count, 'gateway')}, one first? [y/N] ")
    except EOFError:  # as Ctrl-D
        print()
        return False
    return answer.strip().lower() in ("y", "yes")


def _tell(faults: set[tuple[str, str]], gateway: str, step: str, answer: Answer | str) -> None:
    """Print what a reader waits for; health only where it is not well. Keep in `faults` what was wrong."""
    error = answer if isinstance(answer, str) else answer.error
    if error:
        faults.add((gateway, error))
        print(f"{gateway}: {step}: {error}", file=sys.stderr, flush=True)
    elif isinstance(answer, Answer) and step == "health" and answer.word != "ok":
        print(f"{gateway}: {answer.line}", flush=True)
    elif step in ("apply", "back"):
        print(f"{gateway}: {'applied' if step == 'apply' else 'went back'}", flush=True)


def _conclude(rollout: Rollout, count: int, faults: Set[tuple[str, str]]) -> int:
    """Say how it ended, with what is wrong beside the `faults` that were told, and return the status."""
    for name, note in rollout.notes():
        if (name, note) not in faults:
            print(f"buscoupler deploy: {name}: {note}", file=sys.stderr)
    mixed = rollout.mixed()
    words = {
        "same": f"{amount(count, 'gateway')} had this file already",
        "done": f"done: {amount(count, 'gateway')} got the file",
        "refused": "nothing was changed",
        "failed": "all gateways have their former file",
    }
    print(f"unsure of {', '.join(mixed)}: look there" if mixed else words[rollout.phase])
    return int(bool(mixed) or rollout.phase in ("refused", "failed"))


def _step(file: str) -> int:
    from appliance.rollout.station import Station

    try:
        asked = unpack_asked(sys.stdin.buffer.read(TEXT_BYTES + 1))
    except ValueError as error:
        sys.stdout.buffer.write(pack(Answer(f"the request is {error}: nothing was done")))
        return 1
    answer = Station(file, asked.gateway, foresee).do(asked)
    sys.stdout.buffer.write(pack(answer))
    return int(bool(answer.error))


def foresee(old: str, new: str, gateway: str) -> list[str]:
    """Return what a reload from one file to another changes here. Raises `BusError` with what is wrong.

    An error that the old file has on this machine too, as a port that this gateway itself uses, is none.
    """
    from appliance.commands.check import findings_of
    from appliance.commands.diff import differences
    from appliance.commands.run import checked_wiring

    errors = [one for one in findings_of(new, True, gateway) if one.level == "error"]
    known = {one.text for one in findings_of(old, True, gateway)} if errors else set()
    if wrong := [str(one) for one in errors if one.text not in known]:
        raise BusError("; ".join(wrong))
    (found,) = differences(checked_wiring(old), checked_wiring(new), gateway)
    if found.restart:
        raise BusError(f"a reload is not enough: {found.restart}")
    return found.lines()[1:]
