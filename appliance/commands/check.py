"""`buscoupler check FILE...`: print every finding about a topology, before anything starts."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from appliance.machine.here import find_lacking
from bus.errors import TopologyError, why_of
from bus.machine.files import read_bytes, replace_bytes
from topologies.checks.actors import find_actors
from topologies.checks.checker import check_wired
from topologies.checks.exposure import find_exposed
from topologies.checks.messages import find_frames_only
from topologies.findings import Finding, InvalidTopology
from topologies.loading.loader import STDIN, load, load_noted, loads
from topologies.wiring.segments import wired
from topologies.writing.subjects import Given, give_out, written


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="topologies; - is standard input")
    parser.add_argument(
        "--here", action="store_true",
        help="also look at this machine: devices, interfaces, ports, packages, directories, certificates",
    )  # fmt: skip
    parser.add_argument(
        "--gateway", metavar="NAME",
        help="with --here: the gateway that this machine is; by default that with its name, or its addresses",
    )  # fmt: skip
    parser.set_defaults(fail=parser.error)
    parser.add_argument(
        "--write", action="store_true",
        help="first write a free Cyphal subject in place of each range under `subjects` of a CAN bus",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the findings as one JSON list")


def findings_of(file: str, here: bool = False, gateway: str | None = None) -> list[Finding]:
    """Return the errors, warnings and notes about one file; with `here` also those of this machine."""
    try:
        topology, variables = load_noted(file)
    except InvalidTopology as error:
        return list(error.findings)
    wiring = wired(topology)
    found = [*variables, *check_wired(wiring), *find_frames_only(topology), *find_exposed(wiring)]
    found += find_actors(wiring)
    found.sort(key=lambda finding: (finding.line, finding.column, finding.text))
    if not here or any(finding.level == "error" for finding in found):
        return found
    return [*found, *find_lacking(topology, gateway)]


def number(file: str) -> list[Given]:
    """Write numbers in place of ranges of subjects into a file, and return them.

    Raises `TopologyError` for a file that cannot be read or changed.
    """
    given = give_out(wired(load(file)))
    if not given:
        return []
    try:
        text = written(read_bytes(file).decode(), given)
        if give_out(wired(loads(text, file, os.environ))):
            raise TopologyError(f"{file}: the ranges are not where they seem to be: write the numbers")
        replace_bytes(file, text.encode())
    except OSError as error:
        raise TopologyError(f"{file}: cannot write the subjects: {why_of(error)}") from None
    return given


def _write(files: Sequence[str], to: TextIO) -> bool:
    """Number the subjects of all files. Return whether that was possible; say what was written."""
    for file in files:
        try:
            for one in number(file):
                print(f"{file}: {one}", file=to)
        except InvalidTopology:
            continue  # its findings follow
        except TopologyError as error:
            print(error, file=to)
            return False
    return True


def run(options: argparse.Namespace) -> int:
    if options.write and "-" in options.files:
        options.fail("--write needs a file")
    if options.write and not _write(options.files, sys.stderr if options.json else sys.stdout):
        return 1
    if options.gateway is not None and not options.here:
        options.fail("--gateway needs --here")
    found = [(file, findings_of(file, options.here, options.gateway)) for file in options.files]
    findings = [finding for _, some in found for finding in some]
    if options.json:
        print(json.dumps([finding._asdict() for finding in findings]))
    else:
        for finding in findings:
            print(finding)
        for file, some in found:  # whose findings may be in files that it names, such as a database
            if all(finding.level == "note" for finding in some):
                print(f"{STDIN if file == '-' else file}: ok")
    return int(any(finding.level == "error" for finding in findings))
