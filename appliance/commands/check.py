"""`buscoupler check FILE...`: print every finding about a topology, before anything starts."""

import argparse
import json

from appliance.machine.here import find_lacking
from topologies.checks.actors import find_actors
from topologies.checks.checker import check_wired
from topologies.checks.exposure import find_exposed
from topologies.checks.messages import find_frames_only
from topologies.findings import Finding, InvalidTopology
from topologies.loading.loader import STDIN, load_noted
from topologies.wiring.segments import wired


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


def run(options: argparse.Namespace) -> int:
    if options.gateway is not None and not options.here:
        options.fail("--gateway needs --here")
    findings = [f for file in options.files for f in findings_of(file, options.here, options.gateway)]
    if options.json:
        print(json.dumps([finding._asdict() for finding in findings]))
    else:
        for finding in findings:
            print(finding)
        for name in (STDIN if file == "-" else file for file in options.files):
            if not any(finding.file == name and finding.level != "note" for finding in findings):
                print(f"{name}: ok")
    return int(any(finding.level == "error" for finding in findings))
