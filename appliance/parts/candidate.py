"""The candidate that a bridge sends to all brokers, where several gateways stand in for each other."""

from collections.abc import Mapping
from random import SystemRandom
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from bus.keys import Keyring, ring_of
from bus.transports.secure import Security
from bus.urls import split_url
from bus.wire.pattern import Pattern
from topologies.resolved.brokers import CandidateFacts
from topologies.resolved.files import paths_of

if TYPE_CHECKING:
    from bus.leases.candidate import Candidate
    from bus.tmq.wire import Address


def endpoints(facts: CandidateFacts) -> "list[Address]":
    """Return the addresses of the brokers. Names are looked up when a broker is dialled, each time."""
    return [(url.host, url.port) for url in map(split_url, facts.brokers)]


class Proofs(NamedTuple):
    """The proofs of a candidate for brokers: the keys that sign its claims, and the TLS of each broker."""

    keys: Keyring | None = None
    security: "Mapping[Address, Security]" = MappingProxyType({})


def proofs_of(facts: CandidateFacts | None) -> Proofs:
    """Return the proofs of a candidate. Raises `LinkError` for keys or certificates that are of no use."""
    if facts is None:
        return Proofs()
    tls, places = dict(facts.tls), zip(endpoints(facts), facts.brokers, strict=True)
    security = {at: Security(url, tls[url], listens=False) for at, url in places if url in tls}
    for each in security.values():
        each.open()
    return Proofs(ring_of(paths_of(facts.keys)), security)


def candidate_of(facts: CandidateFacts) -> "Candidate":
    """Return a new candidate."""
    from bus.leases.candidate import Candidate  # late: most gateways run no candidate
    from bus.leases.wire import ANOTHER

    return Candidate(
        Pattern(*facts.pattern),
        facts.lease,
        id=SystemRandom().randrange(1, ANOTHER),
        order=facts.on,
        brokers=len(facts.brokers),
        name=facts.gateway,
        lease_ms=facts.lease_ms,
        most_ms=facts.lease_max_ms,
    )
