"""`buscoupler check FILE...`: print every finding about a topology, before anything starts."""

import argparse
import json

from topologies.checker import check
from topologies.findings import Finding, InvalidTopology
from topologies.loader import STDIN, load
from topologies.messages import find_frames_only


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="topologies; - is standard input")
    parser.add_argument("--json", action="store_true", help="print the findings as one JSON list")


def findings_of(file: str) -> list[Finding]:
    """Return the errors, warnings and notes about one file."""
    try:
        topology = load(file)
        return [*check(topology), *find_frames_only(topology)]
    except InvalidTopology as error:
        return list(error.findings)


def run(options: argparse.Namespace) -> int:
    findings = [finding for file in options.files for finding in findings_of(file)]
    if options.json:
        print(json.dumps([finding._asdict() for finding in findings]))
    else:
        for finding in findings:
            print(finding)
        for name in (STDIN if file == "-" else file for file in options.files):
            if not any(finding.file == name and finding.level != "note" for finding in findings):
                print(f"{name}: ok")
    return int(any(finding.level == "error" for finding in findings))
