import asyncio
import os
from asyncio import get_running_loop
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.bridge import Bridge
from bridges.handover.entrance import ALONE
from bridges.ingress import only_frames
from bridges.media.uart.codec import Decoder, encode
from bridges.policy import Policy
from bridges.side import Side
from bus.hub import Hub
from bus.patch import join
from bus.wire.batch import from_payloads
from bus.wire.envelope import Envelope, split, wrap
from bus.wire.frame import is_frame, pack
from bus.wire.timed import Agreement, wrap_timed
from tests.bridges.support import FRAME, PtyPair, RecordingPipe, balanced, frame, recorder, say
from tests.helpers.links import can_link, uart_link
from tests.helpers.peers import until
from tests.helpers.ports import free_channel

FRIDGE, OVEN = pack(1, (7, 1), b"4.5"), pack(1, (8, 1), b"180")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def make(**options: object) -> tuple[Bridge, Clock]:
    clock = Clock()
    return Bridge("b", 0xB, clock=clock, sequence=41, **options), clock  # type: ignore[arg-type]


def rejected(side: Side) -> dict[str, int]:
    return side.ports[0].stats.rejected


def test_plain_sides_pass_the_very_batch_and_reject_what_is_no_frame() -> None:
    bridge, _ = make()
    a, b = bridge.side("a"), bridge.side("b")
    from_a, from_b = recorder(a), recorder(b)
    batch = from_payloads([FRAME, frame(3072)])
    a.publish(batch, from_a)
    assert from_b.messages == [FRAME, frame(3072)]
    say(a, from_a, b"junk", FRAME, b"")
    assert from_b.messages[2:] == [FRAME]
    assert from_a.messages == []
    assert rejected(a) == {"malformed": 2}
    assert bridge.simple
    assert balanced(bridge)


def test_envelopes_that_reach_plain_sides_are_taken_off_and_counted_once() -> None:
    bridge, _ = make()
    a, b = bridge.side("a"), bridge.side("b")
    from_a, from_b = recorder(a), recorder(b)
    enveloped = wrap(FRAME, Envelope(1, 2))
    say(a, from_a, enveloped, enveloped, wrap(FRAME, Envelope(0xB, 9)))
    assert from_b.messages == [FRAME]
    assert rejected(a) == {"duplicate": 1, "echo": 1}
    assert balanced(bridge)


def test_a_trunk_gets_a_stamp_and_a_plain_side_does_not() -> None:
    bridge, _ = make()
    plain, other, trunk = bridge.side("plain"), bridge.side("other"), bridge.side("trunk", Policy(trunk=True))
    source, bare, enveloped = recorder(plain), recorder(other), recorder(trunk)
    say(plain, source, FRAME, FRAME)
    assert bare.messages == [FRAME, FRAME]  # two equal readings are two frames
    assert [split(message) for message in enveloped.messages] == [
        (Envelope(0xB, 42, 8), FRAME),
        (Envelope(0xB, 43, 8), FRAME),
    ]
    assert source.messages == []
    assert balanced(bridge)


def test_what_the_trunk_brings_again_is_dropped_for_its_time() -> None:
    bridge, clock = make()
    trunk, plain = bridge.side("trunk", Policy(trunk=True)), bridge.side("plain")
    wire, app = recorder(trunk), recorder(plain)
    message = wrap(FRAME, Envelope(1, 2))
    say(trunk, wire, message, message)
    clock.now = 4.9
    say(trunk, wire, message)
    assert app.messages == [FRAME]
    say(plain, app, FRAME)
    say(trunk, wire, wire.messages[0])
    assert rejected(trunk) == {"duplicate": 2, "echo": 1}
    clock.now = 15.0
    say(trunk, wire, message)
    assert app.messages == [FRAME, FRAME]
    assert balanced(bridge)


def test_hops_run_out() -> None:
    bridge, _ = make()
    a, b, c = bridge.side("a", Policy(trunk=True)), bridge.side("b", Policy(trunk=True)), bridge.side("c")
    source, far, app = recorder(a), recorder(b), recorder(c)
    say(a, source, wrap(FRAME, Envelope(1, 2, 1)), wrap(FRAME, Envelope(1, 3, 0)))
    assert far.messages == [wrap(FRAME, Envelope(1, 2, 0))]
    assert app.messages == [FRAME, FRAME]
    assert b.ports[0].stats.dropped == {"hops": 1}
    assert balanced(bridge)


def test_forged_keys_without_hops_left_hide_no_frame() -> None:
    bridge, _ = make()
    trunk, plain = bridge.side("a", Policy(trunk=True)), bridge.side("b")
    evil, wire, app = recorder(trunk), recorder(trunk), recorder(plain)
    keys = range(1000)
    say(trunk, evil, *(wrap(pack(1, (9,), b""), Envelope(1, key, 0)) for key in keys))
    app.messages.clear()
    frames = [pack(1, (5,), b"%4d" % key) for key in keys]
    say(trunk, wire, *(wrap(frame, Envelope(1, key)) for key, frame in zip(keys, frames, strict=True)))
    assert app.messages == frames


def test_a_frame_without_hops_left_is_delivered_once() -> None:
    bridge, _ = make()
    trunk, plain = bridge.side("a", Policy(trunk=True)), bridge.side("b")
    wires, app = [recorder(trunk), recorder(trunk)], recorder(plain)
    for hops in ((0, 0), (8, 0)):
        for wire, left in zip(wires, hops, strict=True):
            say(trunk, wire, *(wrap(FRAME, Envelope(hops[0], key, left)) for key in range(40)))
    assert app.messages == [FRAME] * 80
    assert rejected(trunk) == {}
    assert trunk.ports[1].stats.rejected == {"duplicate": 80}


def test_forged_keys_push_out_none_that_another_peer_brought() -> None:
    bridge, _ = make()
    trunk, plain = bridge.side("a", Policy(trunk=True)), bridge.side("b")
    evil, wire, other = recorder(trunk), recorder(trunk), recorder(trunk)
    frames = [wrap(FRAME, Envelope(1, key)) for key in range(1000)]
    say(trunk, wire, *frames)
    app = recorder(plain)
    for start in range(0, 200_000, 1000):
        say(trunk, evil, *(wrap(FRAME, Envelope(2, key)) for key in range(start, start + 1000)))
    app.messages.clear()
    say(trunk, other, *frames)
    assert app.messages == []
    assert len(bridge.seen) <= bridge.seen.cap


def test_keys_are_remembered_when_the_peer_that_brought_them_has_left() -> None:
    bridge, clock = make()
    trunk, plain = bridge.side("a", Policy(trunk=True)), bridge.side("b")
    wire, app = recorder(trunk), recorder(plain)
    say(trunk, wire, wrap(FRAME, Envelope(1, 1)))
    trunk.detach(wire)
    wire = recorder(trunk)
    say(trunk, wire, wrap(FRAME, Envelope(1, 1)))
    assert app.messages == [FRAME]
    clock.now += 15.0
    say(trunk, wire, wrap(FRAME, Envelope(1, 1)))
    assert app.messages == [FRAME] * 2


def test_patterns_of_the_bridge_and_of_a_side() -> None:
    bridge, _ = make(pattern=(7,))
    a, b = bridge.side("a"), bridge.side("b", Policy(deny_out=[(7, 1, 3)], allow_in=[(7, 2)]))
    from_a, from_b = recorder(a), recorder(b)
    say(a, from_a, FRIDGE, OVEN, pack(1, (7, 1, 3)))
    assert from_b.messages == [FRIDGE]
    assert rejected(a) == {"pattern": 1}
    assert b.ports[0].stats.dropped == {"pattern": 1}
    say(b, from_b, FRIDGE, pack(1, (7, 2)))
    assert from_a.messages == [pack(1, (7, 2))]
    assert balanced(bridge)


def test_allow_and_deny_hold_both_ways_and_take_names() -> None:
    bridge, _ = make()
    a, b = bridge.side("a"), bridge.side("b", Policy(trunk=True, allow=[(7,)], deny=[(7, 9)]))
    from_a, from_b = recorder(a), recorder(b)
    say(a, from_a, FRIDGE, OVEN, pack(1, (7, 9)))
    say(b, from_b, FRIDGE, OVEN, pack(1, (7, 9)))
    assert len(from_b.messages) == len(from_a.messages) == 1
    assert balanced(bridge)


def test_all_pipes_of_a_side_hear_each_other_but_not_themselves() -> None:
    bridge, _ = make()
    side = bridge.side("bus", Policy(trunk=True))
    pipes = [recorder(side, str(n)) for n in range(3)]
    say(side, pipes[0], FRAME)
    assert [len(pipe.messages) for pipe in pipes] == [0, 1, 1]
    assert balanced(bridge)


def test_a_ring_of_bridges_over_trunks_ends() -> None:
    """Two appliances join the same two buses: each frame arrives everywhere once, without a storm."""
    left, right = Hub("left"), Hub("right")
    for n in (1, 2):
        bridge = Bridge(f"b{n}", n)
        for hub in (left, right):
            join(hub, bridge.side(hub.name, Policy(trunk=True)))
    near, far = recorder(left), recorder(right)
    third = Bridge("b3", 3)
    app, trunk = third.side("app"), third.side("trunk", Policy(trunk=True))
    join(trunk, left)
    source = recorder(app)
    say(app, source, FRAME)
    keys = [parts[0][:2] for m in far.messages if (parts := split(m)) and parts[0]]
    assert keys
    assert set(keys) == {keys[0]}
    assert len(far.messages) <= 2
    assert len(near.messages) <= 3
    assert source.messages == []


def test_a_pipe_that_goes_leaves_its_counts() -> None:
    bridge, _ = make()
    a, b = bridge.side("a"), bridge.side("b")
    from_a, from_b = recorder(a), recorder(b)
    say(a, from_a, FRAME, b"junk")
    a.detach(from_a)
    a.detach(from_a)
    b.detach(from_b)
    assert bridge.pipes == a.pipes == b.pipes == ()
    gone_a, gone_b = bridge.accounts().values()
    assert (gone_a.stats.received, gone_a.stats.rejected) == (1, {"malformed": 1})
    assert (gone_b.stats.offered, gone_b.stats.sent, gone_b.live, gone_b.gone) == (1, 1, 0, 1)
    assert b.stats.balance() == 0


def test_numbers_begin_with_the_time_of_day_so_those_of_a_restart_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter(1_764_000_000 + after_s for after_s in (0, 0.001, 4000))
    monkeypatch.setattr("bridges.inside.time.time", lambda: next(times))
    first = [bridge_numbers() for _ in range(3)]
    assert [(later - first[0]) % 2**32 for later in first] == [0, 1000, 4_000_000_000]


def bridge_numbers() -> int:
    bridge = Bridge("b", 1)
    plain, trunk = bridge.side("plain"), bridge.side("trunk", Policy(trunk=True))
    source, wire = recorder(plain), recorder(trunk)
    say(plain, source, FRAME)
    found = split(wire.messages[0])
    assert found is not None
    assert found[0] is not None
    return found[0].sequence


ENTRANCES: dict[str, Callable[[Bridge], object]] = {
    "alone": lambda bridge: None,
    "standby": lambda bridge: bridge.stand_by(lambda _: True),
    "active": lambda bridge: bridge.stand_by(lambda _: True).resume(),
    "parallel": lambda bridge: bridge.forward_beside_others(ALONE),
}


@pytest.mark.parametrize("opaque", [False, True])
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_who_does_not_know_times_rejects_them_and_offers_and_hears_all_else(
    entrance: str, opaque: bool
) -> None:
    """A new appliance on the trunk of an old one, which may be one of several gateways of its bridge."""
    bridge, _ = make()
    plain = bridge.side("plain", Policy(opaque=True))
    trunk = bridge.side("trunk", Policy(trunk=True, opaque=opaque))
    out, new = recorder(plain), recorder(trunk)
    ENTRANCES[entrance](bridge)
    end, stamped = Agreement(wants=True), [Envelope(7, number) for number in range(3)]
    timed = [wrap_timed(FRAME, one, 5) for one in stamped]
    offer = end.begin()
    assert offer is not None
    hello = wrap_timed(b"hello", Envelope(7, 9), 5)
    say(trunk, new, offer, *timed, hello, wrap(FRAME, Envelope(7, 10)))
    waits = 1 if entrance == "standby" else 0
    told = {"malformed": 5} | ({"standby": waits} if waits else {})
    assert rejected(trunk) == told
    assert len(out.messages) == 1 - waits
    assert [end.hear(message) for message in new.messages] == [(False, None)] * len(new.messages)
    out.messages.clear()
    say(trunk, new, *(end.leaving(message) for message in timed))  # what an end does that heard no offer
    assert rejected(trunk)["malformed"] == 5
    assert out.messages == ([] if waits else [FRAME] * 3)


def test_sequence_wraps() -> None:
    bridge = Bridge("b", 1, sequence=2**32 - 2)
    plain, trunk = bridge.side("plain"), bridge.side("trunk", Policy(trunk=True))
    source, wire = recorder(plain), recorder(trunk)
    say(plain, source, FRAME, FRAME)
    assert [split(message) for message in wire.messages] == [
        (Envelope(1, 2**32 - 1), FRAME),
        (Envelope(1, 0), FRAME),
    ]


def test_origin_is_u32() -> None:
    with pytest.raises(ValueError, match="origin"):
        Bridge("b", 2**32)


legal = st.sampled_from([FRAME, FRIDGE, frame(4), frame(2048)])
anything = st.one_of(legal, legal.map(lambda f: wrap(f, Envelope(3, 4))), st.binary(max_size=40))


@given(st.lists(anything, max_size=12))
def test_only_frames_agrees_with_a_look_at_each(messages: list[bytes]) -> None:
    assert only_frames(from_payloads(messages)) == all(map(is_frame, messages))


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(anything, max_size=5)), max_size=12), st.booleans())
def test_the_ledger_balances_whatever_comes(sends: list[tuple[int, list[bytes]]], simple: bool) -> None:
    bridge, _ = make()
    sides = [
        bridge.side("a"),
        bridge.side("b", Policy(trunk=not simple)),
        bridge.side("c", Policy(deny=() if simple else [(7,)])),
    ]
    pipes: list[tuple[Side, RecordingPipe]] = [(side, recorder(side)) for side in (*sides, sides[1])]
    for which, messages in sends:
        say(*pipes[which], *messages)
    assert balanced(bridge)
    for side, pipe in pipes:
        assert all(split(message) for message in pipe.messages)
        assert side.trunk or all(map(is_frame, pipe.messages))


async def test_two_buses_a_serial_line_and_a_can_bus(line: PtyPair) -> None:
    plant, office, panel = Hub("plant"), Hub("office"), Hub("panel")
    bridge = Bridge("all", 0xB)
    channel = free_channel()
    uart = uart_link(str(line.path))
    can = can_link("virtual", channel, 1, fd=True, queue_bytes=1 << 20)
    node = can_link("virtual", channel, 2, fd=True, queue_bytes=1 << 20)
    loop = get_running_loop()
    for hub in (plant, office):
        join(hub, bridge.side(hub.name))
    uart.open(bridge.side("uart"), loop)
    can.open(bridge.side("can", Policy(trunk=True)), loop)
    node.open(panel, loop)
    await until(lambda: uart.state == can.state == node.state == "up")
    in_plant, in_office, on_can = recorder(plant), recorder(office), recorder(panel)
    decoder, on_line = Decoder(), list[bytes]()

    say(plant, in_plant, frame(100))
    say(office, in_office, frame(101))
    say(panel, on_can, frame(102))

    os.write(line.master, encode(frame(103)))

    def everywhere() -> bool:
        on_line.extend(decoder.feed(line.read()))
        found = (in_plant.messages, in_office.messages, on_line, on_can.messages)
        return all(len(messages) >= 3 for messages in found)

    await until(everywhere)
    await asyncio.sleep(0)
    bare = [parts[1] for message in on_can.messages if (parts := split(message))]
    for heard, own in ((in_plant.messages, 100), (in_office.messages, 101), (bare, 102), (on_line, 103)):
        assert sorted(heard, key=len) == [frame(size) for size in (100, 101, 102, 103) if size != own]
    assert balanced(bridge)
    for link in (uart, can, node):
        link.close()
        assert link.stats.balance() == 0
    assert balanced(bridge)


async def test_a_clogged_line_does_not_hold_up_the_bridge(line: PtyPair) -> None:
    bridge = Bridge("b", 1)
    a, b = Hub("a"), Hub("b")
    join(a, bridge.side("a"))
    join(b, bridge.side("b"))
    uart = uart_link(str(line.path), queue_bytes=8192)
    uart.open(bridge.side("uart"), get_running_loop())
    await until(lambda: uart.state == "up")
    heard = recorder(b)
    for _ in range(100):
        say(a, None, frame(1000))
    assert len(heard.messages) == 100
    assert uart.stats.dropped["queue full"] > 50
    assert uart.stats.queued_bytes <= 8192
    assert uart.stats.balance() == 0
    assert balanced(bridge)
    uart.close()
