"""The compared bridges, each on one core: ours from a topology, zmq_proxy, a zenoh router."""

import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.systems import COMMAND, HERE, build

GROUP = "239.255.77.4"
PREFIX, PATTERNS, REFUSED = 1000, 50, 45  # as in bridges/load.c
OUT_OF_SCOPE = "ours alone"


class BridgeLoad(NamedTuple):
    """A load on a bridge.

    `medium`: trunk, trunk-bus, multicast, multicast-plain. `size` and `writes` as in bridges/load.c.
    `refused` says which tenth of the frames the bridge filters: those "outside" of its prefix, or "inside" it
    and denied.
    """

    name: str
    title: str
    medium: str
    size: str = "64"
    refused: str = "outside"
    writes: str = "batched"


class Ports(NamedTuple):
    """The ports of 127.0.0.1 where frames go in and come out, and a directory for the bridge's files."""

    intake: int
    outlet: int
    directory: Path = Path()


class BridgeSystem(NamedTuple):
    """A bridge: `command(load, ports)` starts it; `unfit(load)` returns why it cannot be measured, or ""."""

    name: str
    label: str
    protocol: str
    command: Callable[[BridgeLoad, Ports], list[str]]
    unfit: Callable[[BridgeLoad], str]


TOPOLOGY = """\
name: bridge-bench
gateways: {{gw: {{address: 127.0.0.1}}}}
buses:
  floor: {{on: gw, listen: "tcp://127.0.0.1:{intake}"}}
{bus}
bridges:
  worker:
    on: gw
    pattern: [{prefix}]
    join:
      - bus: floor
{deny}
{side}
"""
TRUNK_BUS = '  plant: {{on: gw, listen: {{url: "tcp://127.0.0.1:{outlet}", trunk: true}}}}'
MULTICAST = "      - multicast: {{group: {group}, port: {outlet}, interface: lo, hops: 0}}"
SIDES = {
    "trunk": '      - url: {{address: "tcp://127.0.0.1:{outlet}", mode: listen}}\n        trunk: true',
    "trunk-bus": "      - bus: plant",
    "multicast": MULTICAST + "\n        trunk: true",
    "multicast-plain": MULTICAST,
}


def topology(load: BridgeLoad, ports: Ports) -> str:
    """Return a topology: a plain bus, and a bridge that filters, stamps and sends to the load's medium."""
    values = {"group": GROUP, "outlet": ports.outlet}
    denied = [[PREFIX, number] for number in range(REFUSED, PATTERNS)] if load.refused == "inside" else []
    return TOPOLOGY.format(
        intake=ports.intake,
        prefix=PREFIX,
        bus=TRUNK_BUS.format(**values) if load.medium == "trunk-bus" else "",
        side=SIDES[load.medium].format(**values),
        deny=f"        deny: {denied}" if denied else "",
    )


def _ours(load: BridgeLoad, ports: Ports) -> list[str]:
    path = ports.directory / "bridge.yaml"
    path.write_text(topology(load, ports))
    return [str(COMMAND), "run", str(path), "--run-directory", str(ports.directory)]


def _foreign(kind: str) -> Callable[[BridgeLoad, Ports], list[str]]:
    return lambda _, ports: [sys.executable, str(HERE / "bridges/foreign.py"), kind, *map(str, ports[:2])]


def _unfit(module: str, package: str) -> Callable[[BridgeLoad], str]:
    def reason(load: BridgeLoad) -> str:
        if load.medium != "trunk" or load.size == "mixed":
            return OUT_OF_SCOPE
        return "" if find_spec(module) else f"{package} is missing"

    return reason


SYSTEMS = (
    BridgeSystem(
        "ours",
        "buscoupler run",
        "sp",
        _ours,
        lambda _: "" if COMMAND.exists() else f"{COMMAND} is missing",
    ),
    BridgeSystem(
        "zmq",
        "zmq_proxy",
        "zmtp",
        _foreign("zmq"),
        _unfit("zmq", "pyzmq"),
    ),
    BridgeSystem("zenoh", "zenoh router", "zenoh", _foreign("zenoh"), _unfit("zenoh", "eclipse-zenoh")),
)


def pinned(core: int) -> list[str]:
    """Return the words that pin a command to one of our cores, or none if there is only one core."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 or shutil.which("taskset") is None:
        return []
    return ["taskset", "-c", str(cores[core])]


def generator(load: BridgeLoad, system: BridgeSystem, ports: Ports, seconds: float, pid: int) -> list[str]:
    """Return the command that loads the bridge with process id `pid`, and prints one JSON line."""
    times = [str(min(0.5, seconds)), str(seconds), str(pid)]
    if system.protocol == "zenoh":
        script = str(HERE / "bridges/zenoh_load.py")
        return [sys.executable, script, str(ports.intake), load.size, load.refused, *times]
    medium = "zmtp" if system.protocol == "zmtp" else load.medium.removesuffix("-bus")
    what = [medium, load.size, load.refused, load.writes]
    return [str(build("bridges/load")), str(ports.intake), system.protocol, str(ports.outlet), *what, *times]
