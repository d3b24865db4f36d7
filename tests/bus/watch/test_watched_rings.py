"""Rings of watched hubs in virtual time: they are cut at one place, and nowhere more."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bridges.bridge import Bridge
from bus.balance import imbalances
from bus.patch import join
from bus.watch.rings import HOLD_DOWN_S
from bus.watch.watched import WatchedHub
from bus.wire.batch import from_payloads
from bus.wire.frame import pack
from tests.bus.watch.watched_support import (
    ACK,
    COPIES,
    Leaf,
    Make,
    X,
    canaries,
    copies,
    numbered,
    run,
    same,
    seen,
)
from tests.helpers.nets import HubEnd, Net, Process, Program, processes, ring, wire
from tests.helpers.peers import Ear

RINGS: dict[str, Callable[[int], Net]] = {}


def ring_net(
    size: int = 3, foreign: int = 0, latency_s: float = 50e-6, stall_s: float = 0.0
) -> Callable[[int], Net]:
    def make(seed: int) -> Net:
        net = Net(seed, stall_s)
        for hub in ring(net, size, latency_s, foreign):
            Program(net, hub)
        return net

    return make


def two_pipes(seed: int) -> Net:
    """Return a ring of which ours has no program: all that it knows is two pipes to foreign devices."""
    net = Net(seed)
    Program(net, ring(net, 3, foreign=2)[2])
    return net


def parallel_links(seed: int) -> Net:
    net = Net(seed)
    one, other = net.hub("one"), net.hub("other")
    for _ in range(2):
        wire(net, one, other)
    Program(net, one)
    Program(net, other)
    return net


def joined(seed: int, lines: int = 1, buses: int = 1) -> Net:
    """Return buses, and a bridge that joins them in one process to another hub by so many lines: a ring.

    By one line, the ring is closed between a bus and the hub; by two, between the bridge and the hub.
    """
    net = Net(seed)
    process = Process(net)
    first, *more = (net.hub(f"bus{number}", process=process) for number in range(buses))
    other = net.hub("other", is_watched=False)
    bridge = Bridge("bridge", 1, clock=lambda: net.now)
    bridge.call_later, bridge.chance = process.call_later, net.chance
    net.hubs.append(bridge)
    for bus in (first, *more):
        join(bus, bridge.side(f"0 {bus.name}"))
    for number in range(lines):
        side = bridge.side(f"{number + 1} out")
        processes[id(side)] = process
        wire(net, side, other)
    if lines == 1:
        wire(net, other, first)
    for hub in more or [first]:
        Program(net, hub)
    Program(net, other)
    return net


@pytest.mark.parametrize("buses", [2, 3])
def test_a_ring_that_turns_one_way_through_a_bus_of_two_pipes_shows_at_the_bridge(
    buses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bus cannot tell it from equal readings, and the bridge did not look."""
    net = joined(0, buses=buses)
    ways = [*net.hubs[0].pipes, *(port.inner for port in net.watched()[-1].pipes)]
    back, line = (way for way in ways if isinstance(way, HubEnd))
    for deaf in (back, line.far):
        monkeypatch.setattr(deaf, "take", lambda batch: None)
    net.programs[-1].every(0.005, 30, numbered)
    assert net.run(2.0)
    assert (net.cuts(), net.loops()) == (1, 1)


RINGS |= {
    "a bus and its bridge": joined,
    "two buses and their bridge": partial(joined, buses=2),
    "two lines of a bridge": partial(joined, lines=2),
    "three": ring_net(),
    "two": ring_net(2),
    "seven": ring_net(7),
    "beside busy loops": ring_net(stall_s=0.02),
    "slow wires": ring_net(latency_s=0.02),
    "some foreign": ring_net(4, foreign=2),
    "two pipes": two_pipes,
    "parallel links": parallel_links,
}


def noted_looks(monkeypatch: pytest.MonkeyPatch, hub: WatchedHub) -> list[bytes]:
    """Return a list that gets all that a hub looks at from now on."""
    looked, look = list[bytes](), hub.watch.look

    def noted(message: bytes, *rest: Any) -> Any:
        looked.append(bytes(message))
        return look(message, *rest)

    monkeypatch.setattr(hub.watch, "look", noted)
    return looked


@pytest.mark.parametrize("lines", [1, 2])
def test_a_bridge_of_one_line_leaves_it_to_its_bus_to_look(
    monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    bus, bridge = joined(0, lines).watched()
    looks = noted_looks(monkeypatch, bridge)
    bus.publish(from_payloads([X]), bus.pipes[-1])
    assert looks == []
    bridge.publish(from_payloads([ACK]), bridge.pipes[-1])
    assert looks == [ACK] * (lines - 1)


def test_a_hub_looks_while_two_of_its_pipes_may_be_in_a_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = WatchedHub("hub")
    looks, one = noted_looks(monkeypatch, hub), Ear(hub)
    Leaf(hub)
    one.say(X)
    assert looks == []
    for number in range(1, 4):
        other = Ear(hub)
        one.say(X)
        other.close()
        other.close()
        one.say(ACK)
        assert looks == [X] * number


@pytest.mark.parametrize("make", [numbered, run(50)], ids=["single", "runs"])
@pytest.mark.parametrize("kind", RINGS)
def test_a_ring_is_cut_at_one_place_and_few_copies_pass(kind: str, make: Make) -> None:
    for seed in range(1 if kind == "slow wires" else 2):
        net = RINGS[kind](seed)
        first, *others = net.programs
        first.every(0.005, 30, make)
        assert net.run(3.0, 300_000)
        assert (net.cuts(), net.loops()) == (1, 1), (kind, seed)
        assert copies(net) <= COPIES + (kind == "slow wires") * COPIES
        assert all(seen(program) == 30 * len(list(make(0))) for program in others)
        assert canaries(net) <= 2 * len(net.programs)  # of two hubs that hold
        assert imbalances(net.hubs) == []
        say_once = pack(1, (9,), b"after")
        first.say(say_once)
        assert net.run(0.5)
        assert [program.heard.count(say_once) for program in others] == [1] * len(others)


def parallel_bridges(seed: int, bridges: int, latency_s: float, stall_s: float, is_one_process: bool) -> Net:
    """Return two buses that bridges join, each of which has no other pipe."""
    net = Net(seed, stall_s)
    process = Process(net) if is_one_process else None
    buses = net.hub("one", process=process), net.hub("other", process=process)
    for number in range(bridges):
        bridge = net.hub(f"bridge{number}", process=process)
        for bus in buses:
            wire(net, bridge, bus, latency_s)
    for bus in buses:
        Program(net, bus)
    return net


STORMS = [  # with the seeds that were the worst before copies were bounded, by thousands
    (2, 5e-6, 0.0, False, (0, 70)),
    (3, 5e-6, 0.0, True, (8, 10, 20, 21)),
    (3, 5e-6, 0.0, False, (6, 13, 33, 70)),
    (3, 50e-6, 0.02, True, (27, 43)),
    (4, 5e-6, 0.0, False, (4, 9)),
    (4, 50e-6, 0.02, False, (3, 6)),
]


@pytest.mark.parametrize(("bridges", "latency_s", "stall_s", "is_one_process", "seeds"), STORMS)
def test_bridges_in_parallel_are_cut_but_one_and_few_copies_pass(
    bridges: int, latency_s: float, stall_s: float, is_one_process: bool, seeds: tuple[int, ...]
) -> None:
    for seed in seeds:
        net = parallel_bridges(seed, bridges, latency_s, stall_s, is_one_process)
        for number in range(bridges + 1):  # a loop behind another one becomes visible with the next message
            net.programs[number % 2].say(*numbered(number))
            assert net.run(1.5, 20_000)
        assert net.cuts() == bridges - 1
        assert copies(net) <= (1, 1, 3, 6)[bridges - 1] * COPIES, seed
        assert imbalances(net.hubs) == []


@pytest.mark.parametrize("stall_s", [0.0, 0.02])
def test_two_hubs_that_hold_a_copy_each_do_not_take_that_of_the_other_for_an_answer(stall_s: float) -> None:
    for seed in (6, 16, 43):
        net = ring_net(2, stall_s=stall_s)(seed)
        net.programs[0].say(X)
        assert net.run(1.5, 20_000)
        assert copies(net) <= COPIES


def mesh(seed: int, size: int) -> Net:
    net = Net(seed)
    hubs = [net.hub(f"hub{number}") for number in range(size)]
    for number, hub in enumerate(hubs):
        for other in hubs[:number]:
            wire(net, hub, other)
        Program(net, hub)
    return net


@pytest.mark.parametrize("seed", range(4))
def test_a_mesh_is_cut_until_it_is_a_tree_and_nowhere_more(seed: int) -> None:
    net = mesh(seed, 4)
    net.programs[0].every(0.01, 60, numbered)
    assert net.run(1.5, 200_000)
    assert net.cuts() == 3  # six links join four hubs
    assert copies(net) <= 3 * COPIES
    net.programs[0].say(*numbered(60))
    assert net.run(0.5)
    assert [program.heard.count(numbered(60)[0]) for program in net.programs] == [0, 1, 1, 1]
    assert imbalances(net.hubs) == []


@pytest.mark.parametrize("is_there", [True, False])
def test_a_cut_stays_while_the_loop_is_there_and_opens_once_when_it_has_gone(is_there: bool) -> None:
    for seed in range(2):
        net = RINGS["three"](seed)
        net.programs[0].every(0.1, 700, numbered)
        assert net.run(2.0)
        if not is_there:
            end = next(
                pipe
                for hub in net.watched()
                for pipe in hub.pipes
                if not hub.cuts and isinstance(pipe, HubEnd) and isinstance(pipe.far, HubEnd)
                if not (isinstance(pipe.far.hub, WatchedHub) and pipe.far.hub.cuts)
            )
            end.close()
        assert net.run(60.0)
        assert net.cuts() == is_there
        assert copies(net) <= COPIES  # nothing goes round while a cut is tried
        cuts = [cut for hub in net.watched() for cut in hub.cuts]
        assert [cut.hold_down_s for cut in cuts] == ([4 * HOLD_DOWN_S] if is_there else [])


def test_a_ring_that_closes_beside_equal_readings_is_found_by_other_messages() -> None:
    for seed in range(3):
        net = Net(seed)
        hubs = [net.hub(f"hub{number}") for number in range(3)]
        wire(net, hubs[0], hubs[1])
        wire(net, hubs[1], hubs[2])
        for place in (0, 2):
            Program(net, hubs[place]).every(0.004, 500, same)
        assert net.run(1.0)
        assert net.cuts() == 0
        Program(net, hubs[1]).every(0.01, 100, numbered)
        wire(net, hubs[2], hubs[0])
        assert net.run(1.0, 200_000)
        assert net.cuts() == 1
        assert copies(net, but=X) <= 3 * COPIES
