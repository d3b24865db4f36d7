"""Nets of watched hubs in virtual time: rings are cut at one place, and legal traffic loses nothing."""

import asyncio
from random import Random

import pytest

from bus.balance import imbalances
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.watch.canaries import NONCE_BYTES, Canaries, crossed, is_canary
from bus.watch.rings import ECHOES, FRESH_S, HOLD_DOWN_S
from bus.watch.trials import HELD_BYTES
from bus.watch.watched import WatchedHub, _copies, _first
from bus.wire.batch import Batch, Frames, from_payloads
from bus.wire.envelope import Envelope, wrap
from devices.raw import RawDevice
from tests.bus.watch.watched_support import COPIES, Leaf, X
from tests.helpers.nets import Net
from tests.helpers.peers import Ear, until


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


@pytest.mark.parametrize("bodies", [[X], [X, X, X], [X, b"\1\0\0\0"]])
def test_frames_that_lie_apart_are_watched_as_those_in_one_buffer(bodies: list[bytes]) -> None:
    apart, one = Frames(bodies), from_payloads(bodies)
    assert bytes(_first(apart)) == bytes(_first(one))
    assert _copies(apart, _first(apart)) == _copies(one, _first(one))
