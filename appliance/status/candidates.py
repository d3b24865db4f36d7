"""The candidates for leases in a status: those that brokers here have heard, and what this gateway is."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Final

from appliance.status.shape import Record
from appliance.status.view import Beside, ShownPart
from bus.report import Report

if TYPE_CHECKING:  # most gateways have neither, and start faster without
    from bus.leases.candidacy import Candidacy
    from bus.leases.group import CandidateStatus, Lease

_HEARD_MS: Final = 1000  # a candidate without its links that was heard in the last second is there


def reports_of_brokers(parts: Iterable[ShownPart]) -> list[Report]:
    """Return the reports of brokers here."""
    return [service.report() for part in parts if part.kind == "broker" for service in part.services]


def claims(reports: Iterable[Report]) -> dict[str, int]:
    """Return the age of the last claim of each gateway at a broker here, in milliseconds."""
    heard = dict[str, int]()
    for candidate in (one for report in reports for lease in report.leases for one in lease.candidates):
        heard[candidate.name] = min(candidate.silent_ms, heard.get(candidate.name, 1 << 62))
    return heard


def twins(reports: Iterable[Report]) -> dict[str, list[str]]:
    """Return the hosts of each gateway whose claims for one lease come from several to a broker here."""
    found = dict[str, set[str]]()
    for lease in (lease for report in reports for lease in report.leases):
        there = [one for one in lease.candidates if _is_heard(one)]
        for one, other in combinations(there, 2):
            if one.name == other.name and (one.host != other.host or one.is_beside(other)):
                found.setdefault(one.name, set()).update((one.host, other.host))
    return {name: sorted(hosts) for name, hosts in found.items()}


def _is_heard(one: "CandidateStatus") -> bool:
    return one.ready or one.silent_ms < _HEARD_MS


def of_lease(lease: "Lease", copies: Mapping[tuple[str, str], str]) -> list[Record]:
    """Return the candidates for a lease. `part` is the id of the candidate's bridge, "" if it is unknown."""
    rows = [one._asdict() | {"part": copies.get((lease.bridge, one.name), "")} for one in lease.candidates]
    return [{key: value for key, value in row.items() if key != "known_ms"} for row in rows]


def roles(parts: Iterable[ShownPart]) -> Iterator[Record]:
    """Yield the role of this gateway in each bridge that several gateways run."""
    for part in parts:
        if part.candidacy is not None:
            yield _candidate(part.id, part.candidacy)
        if part.beside is not None:
            yield _beside(part.id, part.beside)


def _beside(part: str, role: Beside) -> Record:
    """Return the row of a bridge that forwards whatever the other gateways do, so nobody holds a lease."""
    return {
        "bridge": role.bridge,
        "part": part,
        "lease": role.lease,
        "pattern": role.pattern,
        "name": role.gateway,
        "role": "parallel",
        "ready": not role.down,
        "settling": False,
        "cause": role.down or "all its gateways forward at once",
        "epoch": 0,
        "holder": "",
        "takeovers": 0,
        "brokers": [],
    }


def _candidate(part: str, candidacy: "Candidacy") -> Record:
    candidate = candidacy.candidate
    return {
        "bridge": candidacy.bridge,
        "part": part,
        "lease": candidate.bridge,
        "pattern": candidate.tokens,
        "name": candidate.name,
        "role": candidate.state,
        "ready": candidate.ready,
        "settling": candidate.settling,
        "cause": candidate.cause,
        "epoch": candidate.epoch,
        "holder": candidate.holder_name,
        "takeovers": candidacy.takeovers,
        "takeovers_without_fault": candidacy.without_fault,
        "leases_lost_late": candidacy.losses,
        "lease_ms": candidate.pace.lease_ms,
        "late_ms": int(1000 * candidate.pace.late_s),
        "window": dict(candidacy.gate.noted()),
        "unsaid": dict(candidacy.unsaid),
        "brokers": [view.reach for view in candidate.views],
    }
