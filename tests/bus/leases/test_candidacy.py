"""A bridge's candidacy on a loop whose time the tests control."""

import asyncio
import logging
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Sequence

import pytest

from bus.leases.candidacy import Candidacy
from bus.leases.candidate import Candidate
from bus.leases.link import BrokerLink
from bus.leases.wire import Grant
from bus.machine.stops import Turns
from bus.tmq.wire import RELAYS, Address, Hello, pack_hello
from tests.bus.leases.candidacies import Loop, Standby, Told, ignore
from tests.bus.leases.failover_world import World
from tests.helpers.peers import until


def fail() -> Sequence[str]:
    raise RuntimeError("on purpose")


@pytest.mark.parametrize("holder", [0, 5])
def test_the_links_hear_once_that_another_gateway_holds_the_lease_no_more(holder: int) -> None:
    one = Standby()
    one.hear(9)
    assert one.freed == 0
    one.hear(holder)
    one.hear(holder)
    assert one.freed == 1
    one.hear(9)
    one.hear(holder)
    assert one.freed == 2


def test_a_broker_that_is_gone_says_nothing_of_who_holds_the_lease() -> None:
    one = Standby()
    one.hear(9)
    one.candidate.reached(0, "unreachable", one.loop.now)
    one.candidacy.judge()
    assert one.freed == 0
    one.candidate.reached(0, "up", one.loop.now)
    one.hear(0)
    assert one.freed == 1


def holder(brokers: int = 1) -> World:
    """Return a world in which g1 forwards, and g0, of a better rank, is about to take over again."""
    world = World(5, brokers, 2, hold_down_s=1.0)
    world.run(1.0)
    world.kill(0)
    world.run(0.5)
    assert world.forwarding() == [1]
    world.revive(0)
    world.gateways[1].gate.busy_s = world.now + 9.0
    while not world.gateways[1].candidacy.resigning:
        world.run(0.01)
    return world


def test_a_resigning_holder_sends_nothing_though_a_broker_confirms_its_lease() -> None:
    world = holder(2)
    resigning = world.gateways[1]
    world.stall(0, 1)
    world.run(0.01)
    for broker in range(2):
        world.cut(1, broker)
    world.run(0.001)
    states = {resigning.candidate.state}
    while resigning.candidacy.resigning:
        world.run(0.002)
        states.add(resigning.candidate.state)
        assert not resigning.gate.forwarding
    assert states == {"doubt", "active", "standby"}
    world.flow(0, 1)
    world.run(1.0)
    assert not resigning.gate.forwarding
    assert world.forwarding() == [0]
    world.kill(0)
    world.run(0.1)
    assert world.forwarding() == [1]


def test_a_resigning_holder_goes_on_at_once_if_the_better_candidate_disappears() -> None:
    world = holder()
    world.mark()
    world.kill(0)
    world.run(0.2)
    assert world.forwarding() == [1]
    assert world.silence_s() < 0.2


def test_a_turn_that_began_in_doubt_is_a_takeover_all_the_same() -> None:
    world = World(5, 1, 1)
    while world.gateways[0].candidate.state != "active":
        world.run(0.001)
    world.cut(0, 0)
    world.run(0.5)
    assert world.forwarding() == [0]
    assert world.gateways[0].candidacy.takeovers == 1


def test_a_link_that_is_down_is_named_as_a_warning_and_its_return_is_normal_life() -> None:
    one = Standby()
    one.told.clear()
    one.links_down = lambda: ["can:can0", "uart:/dev/ttyUSB0"]
    one.loop.run(0.2)
    one.links_down = lambda: ()
    one.loop.run(0.5)
    assert one.told == [
        ("standby: link down: can:can0, uart:/dev/ttyUSB0", logging.WARNING),
        ("standby: all links up", logging.INFO),
    ]


def test_a_lease_is_normal_life_but_a_takeover_and_a_lost_lease_are_not() -> None:
    one = Standby()
    one.told.clear()
    number = one.candidate.claim(0, one.loop.now).number
    grant = Grant((1,), "x", granted=True, alone=True, holder=5, epoch=2, lease_ms=250, number=number)
    one.candidate.heard(0, grant, one.loop.now)
    one.loop.run(0.2)
    one.loop.run(1)
    levels = {cause.partition(":")[0]: level for cause, level in one.told}
    assert levels["active"] == logging.INFO
    assert levels["granted by all brokers that can be reached"] == logging.WARNING
    assert levels["fenced"] == logging.WARNING


def test_a_candidate_whose_link_goes_with_the_other_gateway_gives_the_lease_back() -> None:
    one = Standby()
    one.told.clear()
    number = one.candidate.claim(0, one.loop.now).number
    grant = Grant((1,), "x", granted=True, alone=True, holder=5, epoch=2, lease_ms=250, number=number)
    one.candidate.heard(0, grant, one.loop.now)
    one.candidacy.judge()
    one.links_down = lambda: ["tcp://10.0.0.1:5556"]
    one.loop.run(0.03)
    assert not one.candidate.holding
    assert one.candidacy.takeovers == 0
    assert [cause for cause, _ in one.told][1:] == [
        "active: link down: tcp://10.0.0.1:5556",
        "standby: resigned",
    ]


@pytest.mark.parametrize(("epoch", "level"), [(1, logging.INFO), (2, logging.WARNING)])
def test_the_first_turn_of_all_is_normal_life_and_one_after_another_s_is_not(epoch: int, level: int) -> None:
    one = Standby(holder=0)
    number = one.candidate.claim(0, one.loop.now).number
    grant = Grant((1,), "x", granted=True, alone=True, holder=5, epoch=epoch, lease_ms=250, number=number)
    one.candidate.heard(0, grant, one.loop.now)
    one.loop.run(0.2)
    assert ("granted by all brokers that can be reached", level) in one.told


def test_a_heartbeat_goes_on_whatever_fails_in_between() -> None:
    one = Standby()
    beats = one.candidate.claim(0, one.loop.now).number
    one.links_down = fail
    for _ in range(3):
        with pytest.raises(RuntimeError):
            one.loop.run(0.5)
    one.links_down = lambda: ()
    one.loop.run(0.5)
    assert one.candidate.ready
    assert beats == 1


def candidacy(address: tuple[str, int]) -> Candidacy:
    return Candidacy(Candidate((1,), "x", 5, 0, 1, lease_ms=25), [address], Told(), lambda: (), ignore)


async def test_a_name_that_no_resolver_takes_is_out_of_reach_and_is_asked_again() -> None:
    one = candidacy(("a..b", 9942))
    one.open(asyncio.get_running_loop())
    view = one.candidate.views[0]
    await until(lambda: view.reach == "unreachable")
    view.reach = "unknown"
    await until(lambda: view.reach == "unreachable")
    one.close()


async def test_trouble_in_what_follows_from_a_state_does_not_end_the_connection_for_ever() -> None:
    calls = 0

    def serve(_: StreamReader, writer: StreamWriter) -> None:
        nonlocal calls
        calls += 1
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    candidate = Candidate((1,), "x", 5, 0, 1, lease_ms=25)
    one = BrokerLink(candidate, 0, server.sockets[0].getsockname(), lambda: [][0])
    one.open(asyncio.get_running_loop())
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    await until(lambda: calls >= 3)
    one.close()
    server.close()


async def test_a_broker_that_does_not_answer_is_called_again() -> None:
    calls: list[StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: calls.append(writer), "127.0.0.1", 0)
    one = candidacy(server.sockets[0].getsockname())
    one.open(asyncio.get_running_loop())
    await until(lambda: len(calls) >= 3)
    one.close()
    for writer in calls:
        writer.close()
    server.close()


def counted(one: Candidacy, told: set[Address] | None = None) -> Counter[str]:
    """Announce, and return the counts of what was not sent."""
    one.announce(b"note", set() if told is None else told)
    return one.unsaid


async def test_an_announcement_that_a_broker_does_not_get_is_counted_by_its_reason() -> None:
    ends: list[StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: ends.append(writer), "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    lasting = Candidate((1,), "x", 5, 0, 1, lease_ms=10_000)
    one = Candidacy(lasting, [address], Told(), lambda: (), ignore)
    one.announce(b"note", set())
    assert one.unsaid == {"no peer": 1}
    one.open(asyncio.get_running_loop())
    await until(lambda: lasting.views[0].reach == "up" and bool(ends))
    one.announce(b"note", set())
    assert one.unsaid == {"no peer": 2}  # it has not greeted
    ends[0].write(pack_hello(Hello(1, 60_000)))
    await until(lambda: counted(one)["not relayed"] > 0)
    ends[0].write(pack_hello(Hello(1, 60_000, RELAYS)))
    told = set[Address]()
    await until(lambda: bool(counted(one, told)) and told == {address})
    before = dict(one.unsaid)
    for _ in range(2000):
        one.announce(bytes(60_000), set())
        if one.unsaid["queue full"]:
            break
    assert one.unsaid == before | {"queue full": 1}
    one.revise([], None)
    assert one.unsaid == before | {"queue full": 1}
    one.close()
    ends[0].close()
    server.close()


def test_a_heartbeat_that_becomes_shorter_by_priority_is_not_taken_for_a_late_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bus.leases.lateness.is_real_time", lambda: True)
    loop, candidate = Loop(), Candidate((1,), "x", 5, 0, 0, "a", None, 2000)
    Candidacy(candidate, [], Told(), list, lambda *_, **__: None).open(loop)  # type: ignore[arg-type]
    loop.run(1.0)
    assert candidate.pace.judge(loop.now) == candidate.pace.least_ms == 100


@pytest.mark.parametrize(("heartbeats", "lease_ms"), [(0, 250), (1, 2000)])
def test_a_heartbeat_that_waits_while_the_rest_of_the_gateway_opens_is_not_late(
    heartbeats: int, lease_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bus.leases.lateness.stopped_s", lambda *_: 0.0)  # it worked all the time
    loop, candidate = Loop(), Candidate((1,), "x", 5, 0, 0, "a", 250, 2000)
    Candidacy(candidate, [], Told(), list, lambda *_, **__: None).open(loop)  # type: ignore[arg-type]
    loop.run(heartbeats * candidate.heartbeat_ms / 1000 + 0.01)
    loop.now += 0.4
    loop.run(0.5)
    assert candidate.pace.judge(loop.now) == lease_ms


def test_answers_that_waited_while_the_process_was_stopped_make_no_lease_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bus.leases.lateness.turns", lambda: Turns(5.0, 0))  # it never had one
    loop, candidate = Loop(), Candidate((1,), "x", 5, 0, 0, "a", 250, 2000)
    one = Candidacy(candidate, [], Told(), list, lambda *_, **__: None)
    one.open(loop)  # type: ignore[arg-type]
    loop.run(10.0)
    loop.now += 1.5
    candidate.pace.answered(1.44, loop.now)  # it was stopped between two readers
    one.on_wake()  # guards come before readers, and both before timers
    candidate.pace.answered(1.45, loop.now)
    loop.run(0.5)
    assert candidate.pace.judge(loop.now) == 250


@pytest.mark.parametrize("other", [False, True], ids=["nobody else", "another"])
def test_a_gate_is_told_whether_another_has_forwarded_since_its_own_turn(other: bool) -> None:
    world = World(3, 1, 2)
    world.run(2.0)
    (first,) = world.forwarding()
    one = world.gateways[first]
    if not other:
        world.kill(1 - first)
    one.gate.told.clear()
    world.stall(first, 0)
    world.run(1.0)
    assert one.candidate.state in ("fenced", "standby")
    world.flow(first, 0)
    world.run(0.5)
    world.kill(1 - first)
    world.run(1.0)
    assert world.forwarding() == [first]
    told = [what for what, _ in one.gate.told]
    assert ("conceded" in told) == other
    assert told[-1] == ("resume" if other else "again")
