"""Nets of watched hubs in virtual time: rings are cut at one place, and legal traffic loses nothing."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from random import Random

import pytest

from bus.balance import imbalances
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.watch.canaries import NONCE_BYTES, Canaries, crossed, is_canary
from bus.watch.rings import ECHOES, FRESH_S, HOLD_DOWN_S
from bus.watch.trials import HELD_BYTES
from bus.watch.watched import WatchedHub
from bus.wire.batch import Batch, from_payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from devices.raw import RawDevice
from tests.helpers.nets import HubEnd, Net, Process, Program, ring, wire
from tests.helpers.peers import Ear, until

X, ACK = pack(1, (7,), b"21.5"), pack(1, (8,), b"ok")
COPIES = 100
Make = Callable[[int], Iterable[bytes]]


def numbered(number: int) -> list[bytes]:
    return [pack(1, (9,), b"%d" % number)]


def same(_: int) -> list[bytes]:
    return [X]


def run(of: int) -> Make:
    """Return a maker of runs of so many different messages."""
    return lambda number: [pack(1, (9,), b"%d-%d" % (number, one)) for one in range(of)]


def copies(net: Net, but: bytes = b"") -> int:
    """Return how often a program has heard one message, at most."""
    found = (Counter(m for m in program.heard if m != but and not is_canary(m)) for program in net.programs)
    return max(max(counts.values(), default=0) for counts in found)


def canaries(net: Net) -> int:
    return sum(is_canary(message) for program in net.programs for message in program.heard)


def seen(program: Program) -> int:
    return len({message for message in program.heard if not is_canary(message)})


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


RINGS |= {
    "three": ring_net(),
    "two": ring_net(2),
    "seven": ring_net(7),
    "beside busy loops": ring_net(stall_s=0.02),
    "slow wires": ring_net(latency_s=0.02),
    "some foreign": ring_net(4, foreign=2),
    "two pipes": two_pipes,
    "parallel links": parallel_links,
}


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


def one_hub(net: Net) -> list[Hub]:
    return [net.hub("hub")]


def with_listener(net: Net) -> list[Hub]:
    hubs = one_hub(net)
    Program(net, hubs[0])
    return hubs


def tree(net: Net) -> list[Hub]:
    hubs = [net.hub(f"hub{number}") for number in range(3)]
    for number in (1, 2):
        wire(net, hubs[number], hubs[0])
    return hubs[1:]


PLACES = {"one hub": one_hub, "with a listener": with_listener, "a tree": tree}


class Dialogue:
    """Two programs: one says `make(turn)` and waits until the other has said all of it again."""

    def __init__(self, net: Net, hubs: list[Hub], make: Make, turns: int, think_s: float = 0.0) -> None:
        self.make, self.turns, self.think_s = make, turns, think_s
        self.turn = self.back = 0
        self.far = Program(net, hubs[-1], answer=lambda message: [] if is_canary(message) else [message])
        self.near = Program(net, hubs[0], answer=self._answer)
        self.near.say(*make(0))

    def _answer(self, message: bytes) -> list[bytes]:
        self.back += not is_canary(message)
        if self.back < len(list(self.make(self.turn))):
            return []
        self.turn, self.back = self.turn + 1, 0
        if self.turn == self.turns:
            return []
        self.near.process.later(self.think_s, lambda: self.near.say(*self.make(self.turn)))
        return []


TALKS: dict[str, tuple[Make, int, float]] = {
    "an echo": (same, 2000, 0.0),
    "a slow echo": (same, 200, 0.004),
    "bursts": (lambda _: [X] * 100, 60, 0.0),
    "long bursts": (lambda _: [X] * 2000, 4, 0.0),
    "a value that changes at times": (lambda turn: numbered(turn // 100), 1000, 0.0),
    "other values": (numbered, 1000, 0.0),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("talk", TALKS)
def test_a_dialogue_loses_nothing_and_hears_no_canary(talk: str, place: str) -> None:
    make, turns, think_s = TALKS[talk]
    net = Net(1)
    dialogue = Dialogue(net, PLACES[place](net), make, turns, think_s)
    assert net.run(6.0, 400_000)
    assert dialogue.turn == turns
    assert (net.lost(), net.loops()) == (0, 0)
    # two hubs of a tree may hold the same message; long bursts go on while they are held
    assert canaries(net) <= (place != "one hub" and (place == "a tree" or talk == "long bursts"))
    assert imbalances(net.hubs) == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("senders", "pause_s"), [(2, 0.0005), (5, 0.01), (12, 0.1)])
def test_equal_readings_of_several_senders_all_arrive(senders: int, pause_s: float, place: str) -> None:
    net = Net(2)
    hubs = PLACES[place](net)
    there = len(net.programs)
    made = [Program(net, hubs[number % len(hubs)]) for number in range(senders)]
    for number, program in enumerate(made):
        program.process.later(pause_s * number / senders, partial(program.every, pause_s, 200, same))
    assert net.run(200 * pause_s + 2.0)
    assert [len([m for m in program.heard if m == X]) for program in made] == [200 * (senders - 1)] * senders
    assert there == 0 or net.programs[0].heard.count(X) == 200 * senders
    assert (net.lost(), net.loops()) == (0, 0)
    assert all(sum(map(is_canary, program.heard)) <= 3 for program in net.programs)


@pytest.mark.parametrize("place", PLACES)
def test_requests_and_replies_of_equal_bytes_all_arrive(place: str) -> None:
    """Two programs ask each other all the time, and answer what they are asked."""
    net, counts = Net(3), Counter[int]()

    def peer(number: int, hub: Hub) -> Program:
        def answer(message: bytes) -> list[bytes]:
            counts[number] += message == ACK
            return [ACK] * (message == X) + [X] * (message == ACK and counts[number] < 1000)

        return Program(net, hub, answer=answer)

    hubs = PLACES[place](net)
    for program in [peer(0, hubs[0]), peer(1, hubs[-1])]:
        program.say(X)
    assert net.run(10.0)
    assert counts == {0: 1000, 1: 1000}
    assert (net.lost(), net.loops()) == (0, 0)
    assert canaries(net) <= (0 if place == "one hub" else 4)


def test_a_ping_goes_round_among_many_and_late_joiners_hear_all_that_follows() -> None:
    net = Net(4)
    hub = net.hub("hub")
    made: list[Program] = []
    turns = [0]

    def answer(number: int) -> Callable[[bytes], list[bytes]]:
        def say(message: bytes) -> list[bytes]:
            if is_canary(message) or turns[0] % 4 != number or turns[0] >= 2000:
                return []
            turns[0] += 1
            return [X]

        return say

    made += [Program(net, hub, answer=answer(number)) for number in range(4)]
    turns[0] = 1
    made[0].say(X)
    assert net.run(0.05)
    late, before = Program(net, hub), turns[0]
    assert net.run(5.0)
    assert turns[0] == 2000
    assert late.heard.count(X) >= 2000 - before - 1
    assert (net.lost(), canaries(net)) == (0, 0)


def test_what_is_held_goes_on_when_its_pipe_leaves_or_the_hub_is_replaced() -> None:
    for replaced in (True, False):
        net = Net(5)
        hub = net.hub("hub")
        assert isinstance(hub, WatchedHub)
        ears = [Ear(hub) for _ in range(3)]
        for number in range(64):
            ears[number % 2].say(X)
        assert len(ears[2].heard) < 64
        assert imbalances([hub]) == []
        if replaced:
            WatchedHub().inherit(hub, lambda link: link)
        else:
            ears[0].close()
            ears[1].close()
        assert ears[2].heard == [X] * 64
        assert imbalances([hub]) == []


def test_a_hub_holds_a_bounded_number_of_bytes() -> None:
    net = Net(6)
    hub = net.hub("hub")
    ears, large = [Ear(hub) for _ in range(3)], bytes(HELD_BYTES // 4)
    for number in range(60):
        ears[number % 2].say(large)
        assert len(ears[2].heard) > number - 5
    assert net.run(1.0)
    assert len(ears[2].heard) == 60


def accepted_end(hub: Hub, name: str = "accepted") -> Ear:
    ear = Ear(hub)
    ear.name, ear.accepted = name, True
    return ear


def prove_ring(hub: WatchedHub, out: Ear, back: Ear, times: int = 1) -> None:
    """Send a canary by one pipe and bring it back by another."""
    hub.ask(X, (out,))
    back.say(*[out.heard.pop()] * times)


def hub_at(clock: list[float]) -> WatchedHub:
    return WatchedHub("hub", lambda: clock[0])


def test_of_a_ring_the_pipe_is_cut_that_was_accepted() -> None:
    for swapped in (False, True):
        hub = hub_at([0.0])
        guest, chosen = accepted_end(hub), Ear(hub)
        prove_ring(hub, *((chosen, guest) if swapped else (guest, chosen)))
        assert [cut.pipe for cut in hub.cuts] == [guest]


def test_of_a_ring_of_equals_the_later_pipe_is_cut() -> None:
    for accepted in (False, True):
        for swapped in (False, True):
            hub = hub_at([0.0])
            early, late = Ear(hub), Ear(hub)
            early.accepted = late.accepted = accepted
            prove_ring(hub, *((late, early) if swapped else (early, late)))
            assert [cut.pipe for cut in hub.cuts] == [late]


@pytest.mark.parametrize("is_storm", [True, False])
def test_who_says_again_what_it_hears_is_not_cut_and_a_storm_behind_one_pipe_is(is_storm: bool) -> None:
    hub = hub_at([0.0])
    far, near = accepted_end(hub), Ear(hub)
    for _ in range(64 * is_storm):
        far.say(X)
        near.say(X)
    prove_ring(hub, far, far, ECHOES - 1)
    assert not hub.cuts
    prove_ring(hub, far, far, ECHOES)
    assert [cut.pipe for cut in hub.cuts] == [far] * is_storm


async def test_three_devices_in_a_ring_are_no_storm_and_serve_on() -> None:
    loop, urls = asyncio.get_running_loop(), list[str]()
    devices: list[RawDevice] = []
    for number in range(3):
        devices.append(RawDevice(["tcp://127.0.0.1:0"], urls if number == 2 else urls[-1:]))
        devices[-1].open(loop)
        urls.append(devices[-1].links[0].url)
    ears = [Ear(device.hub) for device in devices]
    try:
        await until(lambda: all(len(device.hub.pipes) == 3 for device in devices))  # two peers and an `Ear`
        ears[0].say(X)
        await until(lambda: any(device.hub.loops for device in devices))
        ears[1].say(b"still served")
        await until(lambda: any(b"still served" in ear.heard for ear in ears))
        assert max(ear.heard.count(X) for ear in ears) <= COPIES
        assert sum(device.hub.loops for device in devices) == 1
    finally:
        for device in devices:
            device.close()


async def test_who_connects_is_a_guest_and_who_was_dialled_is_not() -> None:
    loop = asyncio.get_running_loop()
    near = RawDevice(["tcp://127.0.0.1:0"])
    near.open(loop)
    far = RawDevice([], [near.links[0].url])
    far.open(loop)
    try:
        await until(lambda: bool(near.hub.pipes and far.hub.pipes))
        assert near.hub.is_guest(near.hub.pipes[0])
        assert not far.hub.is_guest(far.hub.pipes[0])
    finally:
        for device in (near, far):
            device.close()


def test_a_cut_pipe_counts_what_it_does_not_carry_and_is_not_offered_what_it_brought() -> None:
    hub = hub_at([0.0])
    pipe, keeper = accepted_end(hub), Ear(hub)
    prove_ring(hub, pipe, keeper)
    keeper.say(b"more")
    assert pipe.stats.dropped == {"loop": 1}
    pipe.say(X)
    assert (pipe.stats.offered, pipe.stats.rejected) == (2, {"loop": 1})
    assert keeper.heard == []
    assert pipe.stats.balance() == 0
    pipe.close()
    assert imbalances([hub]) == []


def test_what_came_with_a_canary_goes_on_without_it() -> None:
    hub = hub_at([0.0])
    guest, link, ear = accepted_end(hub), Ear(hub), Ear(hub)
    hub.ask(X, (guest,))
    link.say(b"before", guest.heard.pop(), b"after")
    assert ear.heard == [b"before", b"after"]
    assert link.stats.rejected == {"canary": 1}
    assert imbalances([hub]) == []
    assert [cut.pipe for cut in hub.cuts] == [guest]


def test_a_pipe_that_has_gone_with_its_canary_is_in_no_ring() -> None:
    hub = hub_at([0.0])
    guest, link = accepted_end(hub), accepted_end(hub)
    hub.ask(X, (guest,))
    guest.close()
    link.say(guest.heard.pop())
    assert hub.cuts == ()


def test_a_canary_that_comes_late_proves_nothing() -> None:
    clock = [0.0]
    hub = hub_at(clock)
    guest, link = accepted_end(hub), Ear(hub)
    hub.ask(X, (guest,))
    clock[0] = 0.3
    link.say(guest.heard.pop())
    assert (hub.cuts, guest.heard) == ((), [])


def test_a_pipe_that_plays_canaries_again_is_cut_for_longer_each_time() -> None:
    clock = [0.0]
    hub = hub_at(clock)
    guest, link = accepted_end(hub), Ear(hub)
    found = list[float]()
    for _ in range(3):
        prove_ring(hub, guest, link)
        found.append(hub.cuts[0].hold_down_s)
        while hub.cuts:
            clock[0] += 1.0
            link.say(b"time %f passes" % clock[0])
        guest.heard.clear()
    assert found == [HOLD_DOWN_S, 2 * HOLD_DOWN_S, 4 * HOLD_DOWN_S]


def test_a_cut_is_kept_by_a_canary_that_comes_back_and_an_echo_of_it_is_none() -> None:
    for is_echo in (False, True):
        clock = [0.0]
        hub = hub_at(clock)
        far, link = accepted_end(hub), Ear(hub)
        prove_ring(hub, far, link)
        clock[0] = 2 * HOLD_DOWN_S
        link.say(b"time has passed")
        (far if is_echo else link).say(*[far.heard.pop()] * ECHOES)
        assert hub.cuts[0].hold_down_s == (1 if is_echo else 2) * HOLD_DOWN_S


def foreign_canary() -> bytes:
    """Return a canary of another hub."""
    made = Canaries[str](lambda: bytes(NONCE_BYTES))
    return made.make(made.new_claim(0.0), X, "a", 0.0)


@pytest.mark.parametrize("is_fresh", [True, False])
def test_canaries_of_others_go_over_a_fresh_cut_marked_both_ways(is_fresh: bool) -> None:
    for is_out in (True, False):
        clock = [0.0]
        hub = hub_at(clock)
        guest, link, canary = accepted_end(hub), Ear(hub), foreign_canary()
        prove_ring(hub, guest, link)
        clock[0] = FRESH_S if is_fresh else FRESH_S + 0.1
        one, other = (link, guest) if is_out else (guest, link)
        one.say(canary)
        assert other.heard == [crossed(canary)] * is_fresh
        assert imbalances([hub]) == []


def test_a_canary_that_ends_at_a_cut_may_still_come_by_another_way() -> None:
    clock = [0.0]
    hub = hub_at(clock)
    guest, link, ear, canary = accepted_end(hub), Ear(hub), Ear(hub), foreign_canary()
    prove_ring(hub, guest, link)
    ear.heard.clear()
    clock[0] = FRESH_S + 0.1
    guest.say(canary)
    assert ear.heard == []
    link.say(canary)
    assert ear.heard == [canary]


@pytest.mark.parametrize("is_marked", [True, False])
def test_who_gets_its_canary_back_drops_copies_and_cuts_unless_it_is_marked(is_marked: bool) -> None:
    hub = hub_at([0.0])
    ears = [Ear(hub) for _ in range(3)]
    for number in range(64):
        ears[number % 2].say(X)
    passed = len(ears[2].heard)
    assert passed < 64
    hub.ask(X, (ears[0],))
    canary = ears[0].heard.pop()
    ears[1].say(crossed(canary) if is_marked else canary)
    assert len(hub.cuts) == (not is_marked)
    assert len(ears[2].heard) == passed
    assert sum(ear.stats.rejected.get("loop", 0) for ear in ears) == 64 - passed
    assert imbalances([hub]) == []


@pytest.mark.parametrize("is_lower", [True, False])
def test_of_two_canaries_the_lower_goes_on_and_the_other_is_marked(is_lower: bool) -> None:
    hub = WatchedHub("hub", lambda: 0.0, chance=Random(1))
    out, back, ear = Ear(hub), Ear(hub), Ear(hub)
    hub.ask(X, (out,))
    mine, other = out.heard.pop(), foreign_canary()
    if not is_lower:
        other = other.replace(bytes(NONCE_BYTES), b"\xfe" * NONCE_BYTES)
    back.say(other)
    assert ear.heard == [other if is_lower else crossed(other)]
    back.say(mine)
    assert len(hub.cuts) == (not is_lower)


def test_a_new_envelope_in_every_lap_does_not_hide_the_frame() -> None:
    net = Net(7)
    hub = net.hub("hub")
    ears = [Ear(hub) for _ in range(3)]
    for sequence in range(64):
        ears[sequence % 2].say(wrap(X, Envelope(1, sequence)))
    assert len(ears[2].heard) < 64


class Leaf(Ear):
    is_leaf = True


def test_a_service_of_this_process_is_in_no_ring_and_is_never_held() -> None:
    net = Net(8)
    hub = net.hub("hub")
    service, program, other = Leaf(hub), Ear(hub), Ear(hub)
    for _ in range(200):
        program.say(X)
        service.say(X)
    assert other.heard == [X] * 400
    assert not any(map(is_canary, program.heard))


def test_equal_messages_of_one_pipe_are_never_held() -> None:
    net = Net(9)
    hub = net.hub("hub")
    near, far = Ear(hub), Ear(hub)
    for _ in range(6000):
        near.say(X, X)
    assert far.heard == [X] * 12_000


class Sink(Pipe):
    """A pipe that counts, and keeps nothing."""

    def __init__(self, hub: Hub) -> None:
        self.name, self.stats, self.got = "sink", Stats(), 0
        hub.attach(self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        self.got += batch.count

    def close(self) -> None:
        raise NotImplementedError


def test_messages_of_a_pipe_keep_their_order_while_they_wait() -> None:
    net = Net(10)
    hub = net.hub("hub")
    ears, sink = [Ear(hub) for _ in range(3)], Sink(hub)
    said: list[list[bytes]] = [[], []]
    for number in range(120):
        one = number % 2
        messages = [X, b"%d-%d" % (one, number)]
        said[one] += messages
        hub.publish(from_payloads(messages), ears[one])
        assert net.run(0.0002)
    assert net.run(1.0)
    assert sink.got == 240
    for one in (0, 1):
        heard = [m for m in ears[1 - one].heard if not is_canary(m)]
        assert heard == said[one]
