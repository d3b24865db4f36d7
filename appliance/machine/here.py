"""`check --here`: everything that this machine lacks to run a gateway's part of a topology."""

import os
import socket
from collections.abc import Iterator, Sequence

from appliance.local.places import runtime_directory
from appliance.machine.inspection import disk_of, is_here, lacking_room, trouble
from appliance.machine.turns import lease_words, worst_s
from appliance.status.client import ask_all, status_socket, status_sockets
from bus.machine.holders import words_of_process
from bus.machine.permissions import distrust
from bus.needs import Directory, Lasting, Need, Room, Secret
from bus.schema import Where
from bus.urls import IPC_PATH_BYTES_MAX
from topologies.checks.needs import needs_of
from topologies.findings import Finding, error, note, warning
from topologies.model import Topology, gateway_named
from topologies.resolved.brokers import lease_bounds
from topologies.wiring.segments import wired


def find_lacking(topology: Topology, wanted: str | None) -> list[Finding]:
    """Return an error for each need that this machine does not meet, and a warning for each risk.

    Each finding is there once, in the order of the file. `wanted` is a gateway; without it, that is the one
    named like this host, or the only one, or all with an address of this machine.
    """
    gateways = _gateways(topology, wanted)
    known = ", ".join(topology.gateways)
    if not gateways:
        return [error(topology.where, f"which gateway is this machine? Choose with --gateway: {known}")]
    if wanted and wanted not in topology.gateways:
        return [error(topology.where, f'no gateway "{wanted}"; known here: {known}')]
    found = {finding for name in gateways for finding in _lacking(topology, name)}
    return sorted(found, key=lambda finding: (finding.line, finding.column, finding.text))


def _gateways(topology: Topology, wanted: str | None) -> list[str]:
    wanted = wanted or gateway_named(topology, socket.gethostname())
    if wanted is not None or len(topology.gateways) == 1:
        return [wanted or next(iter(topology.gateways))]
    return [name for name, gateway in topology.gateways.items() if is_here(gateway.address)]


def _lacking(topology: Topology, gateway: str) -> Iterator[Finding]:
    here = topology.gateways[gateway]
    if not is_here(here.address):
        text = f"{here.address} is no address of this machine, so others will not find {gateway} there"
        yield warning(here.where, f"{text}: correct it, or choose another --gateway")
    path = runtime_directory() / topology.name / gateway / status_socket(())
    if len(os.fsencode(path)) > IPC_PATH_BYTES_MAX:
        text = f"{path} is too long for a socket, which top and run --only need"
        yield warning(here.where, f"{text}: choose shorter names, or a --run-directory")
    if os.path.lexists(runtime_directory()) and (why := distrust(runtime_directory())):
        yield error(here.where, f"{runtime_directory()} {why}")
    wiring = wired(topology)
    if wiring.leases(gateway):
        yield _pace(topology, here.where)
    needs = list(needs_of(wiring, gateway))
    yield from _crowded([(where, need) for where, need in needs if isinstance(need, Room)])
    placed = [(here.where, Directory(str(runtime_directory()))), *needs]
    looked = [(where, need, trouble(need)) for where, need in placed if not isinstance(need, Room)]
    yield from _told(looked, _running(topology, gateway) if any(text for _, _, text in looked) else [])


def _told(looked: Sequence[tuple[Where, Need, str]], running: Sequence[str]) -> Iterator[Finding]:
    """Yield each trouble once. What the running gateway itself holds is none."""
    told = {""}
    for where, need, text in looked:
        if text in told:
            continue
        told.add(text)
        if any(words in text for words in running):
            yield note(where, f"this gateway runs: {text}")
        else:
            yield (warning if isinstance(need, Secret | Lasting) else error)(where, text)


def _running(topology: Topology, gateway: str) -> list[str]:
    """Return the processes that run a gateway now, in words, as far as this user may ask them."""
    statuses = [found for _, found in ask_all(status_sockets(None)) if isinstance(found, dict)]
    ours = topology.name, gateway
    return [words_of_process(one["pid"]) for one in statuses if (one["topology"], one["gateway"]) == ours]


def _pace(topology: Topology, where: Where) -> Finding:
    """Return what the scheduler of this machine allows: the lease that it keeps."""
    lease_ms, most_ms = lease_bounds(topology)
    long, text = lease_words(lease_ms, most_ms, worst_s())
    return (warning if long else note)(where, text)


def _crowded(placed: Sequence[tuple[Where, Room]]) -> Iterator[Finding]:
    """Yield a warning for each disk that has less room than all directories on it may take together."""
    disks: dict[int, list[tuple[Where, Room]]] = {}
    for where, need in placed:
        if trouble(Directory(need.path)):
            continue  # told already
        disks.setdefault(disk_of(need), []).append((where, need))
    for there in disks.values():
        if text := lacking_room([need for _, need in there]):
            yield warning(there[-1][0], text)
