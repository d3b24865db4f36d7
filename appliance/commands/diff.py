"""`buscoupler diff A B`: what a reload of a gateway from A to B would open, close, change and keep."""

import argparse
import sys
from json import dumps
from typing import Any, NamedTuple

from appliance.commands.run import checked_wiring
from appliance.compose import Appliance
from appliance.parts.changes import Change
from appliance.reload.outcome import restart
from bus.errors import BusError
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import Wiring

_FATES = {True: "stays connected", False: "is opened anew"}


class Difference(NamedTuple):
    """The changes of a reload on one gateway. `restart` says why a reload is not enough; "" if it is."""

    gateway: str
    changes: list[Change]
    kept: list[str]
    restart: str = ""

    @property
    def same(self) -> bool:
        return not self.changes and not self.restart

    def record(self) -> dict[str, Any]:
        """Return the difference for JSON."""
        changes = [change._asdict() for change in self.changes]
        return {"gateway": self.gateway, "changes": changes, "kept": self.kept, "restart": self.restart}

    def lines(self) -> list[str]:
        """Return the difference as lines for people."""
        found = [f"restart: {self.restart}"] if self.restart else []
        found += [_line(change) for change in self.changes]
        found += [f"kept {title}" for title in self.kept] if found else ["nothing differs"]
        return [f"{self.gateway}:", *(f"  {line}" for line in found)]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="A", help="the topology that runs; - is standard input")
    parser.add_argument("new", metavar="B", help="the topology that is to run")
    parser.add_argument("--gateway", metavar="NAME", help="only this gateway; all by default")
    parser.add_argument("--json", action="store_true", help="print one JSON document for each gateway")


def run(options: argparse.Namespace) -> int:
    try:
        found = differences(checked_wiring(options.old), checked_wiring(options.new), options.gateway)
    except BusError as error:
        print(f"buscoupler diff: {error}", file=sys.stderr)
        return 2
    for one in found:
        print(dumps(one.record()) if options.json else "\n".join(one.lines()))
    return int(not all(one.same for one in found))


def differences(old: Wiring, new: Wiring, gateway: str | None = None) -> list[Difference]:
    """Return what differs on each gateway, or on one. Raises `BusError` where a reload is refused."""
    names = (
        [gateway]
        if gateway is not None
        else list(dict.fromkeys([*old.topology.gateways, *new.topology.gateways]))
    )
    return [_difference(old, new, name) for name in names]


def _difference(old: Wiring, new: Wiring, gateway: str) -> Difference:
    before, after = old.topology, new.topology
    if gateway in before.gateways and gateway not in after.gateways:
        return Difference(gateway, [], [], f"{gateway} is not in {after.name}: stop it; a reload is refused")
    if gateway not in before.gateways and gateway in after.gateways:
        return Difference(gateway, [], [], f"{gateway} is new: start it")
    changes, kept = Appliance(resolve(old, gateway)).foresee(resolve(new, gateway))
    return Difference(gateway, changes, kept, restart(before.name, after.name))


def _line(change: Change) -> str:
    fate = "" if change.stays is None else f" ({_FATES[change.stays]})"
    return change.line() + fate
