"""The gateways of running topologies that do not answer. Pure.

A gateway answers on its own machine only, so one that is silent here may run elsewhere. If a broker here
hears its claims, the line says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from appliance.status.shape import Status
from appliance.status.times import stamp

ENDED = "silent: its process ended without closing, or hangs"
UNREADABLE = "runs, and answers as another version does: use the `top` of that version"
HEARD_MS = 10_000  # a claim that is older proves no life


class GatewayName(NamedTuple):
    """The name of a gateway, with that of its topology."""

    topology: str
    gateway: str


def name_of(status: Status) -> GatewayName:
    """Return the gateway that sent a status."""
    return GatewayName(status["topology"], status["gateway"])


def silent(
    statuses: Sequence[Status], left: Mapping[GatewayName, str], seen_ns: Mapping[GatewayName, int]
) -> Iterator[str]:
    """Yield a line for each cause of silence, with its gateways.

    `left` has the cause for gateways with a socket and no status; `seen_ns`, the time of the last answer.
    """
    here = {name_of(status) for status in statuses}
    expected = {
        GatewayName(status["topology"], gateway) for status in statuses for gateway in status["gateways"]
    }
    addresses = {
        GatewayName(status["topology"], gateway): address
        for status in statuses
        for gateway, address in status["gateways"].items()
    }
    heard = dict(_heard(statuses))
    by_cause = dict[tuple[str, str], list[str]]()
    for name in sorted({*expected, *left, *seen_ns} - here):
        cause = _cause(left.get(name), seen_ns.get(name), heard.get(name))
        address = addresses.get(name)
        shown = f"{name.gateway} ({address})" if address else name.gateway
        by_cause.setdefault((name.topology, cause), []).append(shown)
    for (topology, cause), gateways in by_cause.items():
        yield f"{topology} on {', '.join(gateways)}: {cause}"


def _cause(left: str | None, seen_ns: int | None, heard_ms: int | None) -> str:
    if seen_ns is not None and left != UNREADABLE:
        return f"silent since {stamp(seen_ns / 1e9)}: no process answers"
    if left:
        return left
    if heard_ms is not None and heard_ms < HEARD_MS:
        return "not on this machine: a broker here hears its claims"
    return "silent: no process of it answers on this machine"


def _heard(statuses: Sequence[Status]) -> Iterator[tuple[GatewayName, int]]:
    for status in statuses:
        for broker in status["brokers"]:
            for lease in broker["leases"]:
                for candidate in lease["candidates"]:
                    yield GatewayName(status["topology"], candidate["name"]), candidate["silent_ms"]
