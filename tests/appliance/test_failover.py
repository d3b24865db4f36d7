"""Redundant gateways as real processes: a short run of `benchmarks.takeovers`."""

import asyncio
from collections.abc import AsyncIterator
from itertools import groupby
from pathlib import Path

import pytest

from appliance.parts.broker import BrokerPart
from bus.keys import new_key
from capture.reader import read
from capture.schema import Kind
from devices.child import settle
from tests.appliance.pairs import LEASE_MS, PAIR, Pair, forwarding
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.certificates import own_tls
from tests.helpers.peers import until
from tests.rigs.takeovers.trial import trial
from topologies.loading.loader import loads


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("medium", "envelopes", "parallel", "faults"),
    [
        ("can", True, False, ["kill", "freeze", "broker and bridge"]),
        ("uart", False, False, ["kill", "partition", "link down"]),
        ("can", True, True, ["kill", "freeze"]),
        ("raw", False, False, ["kill"]),
    ],
)
async def test_takeovers_of_real_processes_lose_and_double_nothing(
    medium: str, envelopes: bool, parallel: bool, faults: list[str]
) -> None:
    outcomes = await trial(medium, envelopes, faults, 1, 100, print, LEASE_MS, parallel)
    assert [outcome.fault for outcome in outcomes] == faults
    for outcome in outcomes:
        assert (outcome.lost, outcome.doubled, outcome.note) == (0, 0, ""), outcome
        assert outcome.sent > 0


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    async with forwarding() as made:
        yield made


async def test_gateways_with_keys_stand_in_for_each_other_and_whoever_has_none_is_refused(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "plant.key")
    new_key(path)
    async with forwarding(f"{PAIR}keys: {path}\n") as pair:
        pair.table.terms.hold_down_s = 1000.0
        first, second = ("gw-a", "gw-b") if pair.forwards("gw-a") else ("gw-b", "gw-a")
        await until(lambda: pair.candidacy(second).candidate.ready)
        part = pair.hub.parts["broker main"]
        assert isinstance(part, BrokerPart)
        begun = dict(part.service.rejected)  # while leases were short, attempts to connect may have ended
        assert "unsigned" not in begun
        await pair.cross(1)
        pair.gateways[first].close()
        await until(lambda: pair.forwards(second))
        await pair.cross(2)
        assert part.service.rejected == begun
        unsigned = appliance_of(loads(PAIR.format(*pair.ports), "pair.yaml"), first)
        unsigned.open(asyncio.get_running_loop())
        await until(lambda: part.service.rejected.get("unsigned", 0) > 3)
        assert pair.forwards(second)
        unsigned.close()


async def test_gateways_with_certificates_stand_in_for_each_other_also_when_these_are_renewed(
    tmp_path: Path,
) -> None:
    tls = own_tls(tmp_path)
    words = f"{{{{cert_file: {tls.cert_file}, ca_file: {tls.ca_file}, require_peer_cert: true}}}}"
    text = PAIR.replace('"tcp://127.0.0.1:{0}"', f'{{{{url: "tls+tcp://127.0.0.1:{{0}}", tls: {words}}}}}')
    async with forwarding(text) as pair:
        pair.table.terms.hold_down_s = 1000.0
        first, second = ("gw-a", "gw-b") if pair.forwards("gw-a") else ("gw-b", "gw-a")
        await until(lambda: pair.candidacy(second).candidate.ready)
        own_tls(tmp_path)  # another authority, and others in its name
        gateways = pair.hub, *pair.gateways.values()
        lines = [change.line() for one in gateways for change in reloaded(one, pair.topology)]
        where = f"listen tls+tcp://127.0.0.1:{pair.ports[0]}"
        assert set(lines) == {f"changed broker main: {where}: tls", "changed bridge joint: certificates"}
        part = pair.hub.parts["broker main"]
        assert isinstance(part, BrokerPart)
        begun = dict(part.service.rejected)  # while leases were short, attempts to connect may have ended
        await pair.cross(1)
        accepted = part.service.counts["accepted"]
        pair.gateways[first].close()
        await until(lambda: pair.forwards(second))
        await pair.cross(2)
        assert part.service.counts["accepted"] == accepted  # those connections stayed
        pair.gateways[first] = pair.start(first)
        await until(lambda: pair.candidacy(first).candidate.ready)
        (view,) = pair.candidacy(first).candidate.views
        await until(lambda: view.grant is not None)
        assert part.service.rejected == begun


async def test_one_stops_the_other_goes_on_and_the_first_gets_its_place_back(pair: Pair) -> None:
    if pair.forwards("gw-b"):  # it was quicker, and the broker did not know of the other
        pair.table.terms.hold_down_s = 0.1
        await until(lambda: pair.forwards("gw-a"))
    pair.table.terms.hold_down_s = 1000.0
    await until(lambda: pair.candidacy("gw-b").candidate.ready)
    await pair.cross(1)
    pair.gateways["gw-a"].close()
    await until(lambda: pair.forwards("gw-b"))
    await pair.cross(2)
    kinds = [event.kind for event in pair.gateways["gw-b"].monitor.events]
    assert "takeover" in kinds
    assert "lease" in kinds
    assert len(pair.table) == 1
    (view,) = pair.candidacy("gw-b").candidate.views
    await until(lambda: view.grant is not None and view.grant.acting)
    assert view.grant is not None
    assert (view.grant.bridge, view.grant.name, view.grant.acting) == ("joint", "gw-b", True)

    pair.gateways["gw-a"] = pair.start("gw-a")
    await until(lambda: pair.candidacy("gw-a").candidate.ready)
    await pair.cross(3)
    assert not pair.forwards("gw-a")
    pair.table.terms.hold_down_s = 0.1
    await until(lambda: pair.forwards("gw-a"))
    assert not pair.forwards("gw-b")
    await pair.cross(4)


async def test_a_tap_records_what_the_candidates_tell(tmp_path: Path) -> None:
    recorders = "".join(
        f'  tap-{name}: {{{{on: gw-{name}, tap: joint, directory: "{tmp_path}", yields: false}}}}\n'
        for name in "ab"
    )
    async with forwarding(f"{PAIR}devices:\n{recorders}") as pair:
        await pair.cross(1)
        first, other = ("gw-a", "gw-b") if pair.forwards("gw-a") else ("gw-b", "gw-a")
        await until(lambda: pair.candidacy(other).candidate.ready)
        pair.gateways[first].close()
        await until(lambda: pair.forwards(other))
    assert await asyncio.to_thread(settle, 50)
    told = [row for row in read(tmp_path) if row.kind == Kind.EVENT]
    assert {row.hub for row in told} == {"bridge joint"}
    granted = b"takeover: granted by all brokers that can be reached"
    holders = (row.gateway for row in told if row.message == granted)
    assert [name for name, _ in groupby(holders)] == [first, other]
    assert b"lease: standby: all links up" in {row.message for row in told if row.gateway == other}


async def test_a_broker_that_dies_alone_does_not_stop_the_bridge(pair: Pair) -> None:
    holder = "gw-a" if pair.forwards("gw-a") else "gw-b"
    pair.hub.parts["broker main"].close()
    await until(lambda: pair.candidacy(holder).candidate.state == "orphan")
    await pair.cross(1)
    pair.hub.parts["broker main"].open(asyncio.get_running_loop())
    await until(lambda: pair.candidacy(holder).candidate.state == "active")
    await pair.cross(2)
