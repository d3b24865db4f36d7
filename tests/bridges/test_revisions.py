"""A running bridge whose sides, rules and gate change between two batches."""

import asyncio
from collections.abc import Callable

from bridges.bridge import Bridge
from bridges.handover.gate import Gate
from bridges.policy import Policy
from bridges.side import Side
from bus.wire.envelope import Envelope, split, wrap
from bus.wire.frame import pack
from tests.bridges.support import RecordingPipe, recorder, say

A, B = pack(1, (7, 1), b"a"), pack(1, (8, 1), b"b")


def made(*sides: Policy, pattern: tuple[int, ...] = ()) -> tuple[Bridge, list[Side], list[RecordingPipe]]:
    bridge = Bridge("b", 0xB, pattern, clock=lambda: 1000.0, sequence=41)
    joined = [bridge.side(str(number), policy) for number, policy in enumerate(sides)]
    return bridge, joined, [recorder(side) for side in joined]


def heard(pipe: RecordingPipe) -> list[bytes]:
    """Return what a pipe was sent since the last call."""
    messages, pipe.messages = pipe.messages, []
    return messages


def test_rules_take_effect_with_the_next_batch_and_go_again() -> None:
    bridge, (a, b), (from_a, from_b) = made(Policy(), Policy())
    assert bridge.simple
    for policy, passed in (
        (Policy(deny=((7,),)), [B]),
        (Policy(allow_out=((7,),)), [A]),
        (Policy(deny_in=((7,),)), [A, B]),
        (Policy(), [A, B]),
    ):
        bridge.revise_side(b, policy)
        assert bridge.simple == (policy == Policy())
        say(a, from_a, A, B)
        assert heard(from_b) == passed
    bridge.revise(0xB, (8,))
    say(a, from_a, A, B)
    assert heard(from_b) == [B]
    bridge.revise(0xB, ())
    assert bridge.simple
    assert bridge.sides == (a, b)


def test_a_side_becomes_a_trunk_and_plain_again() -> None:
    bridge, (a, b), (from_a, from_b) = made(Policy(), Policy())
    bridge.revise_side(b, Policy(trunk=True))
    say(a, from_a, A)
    assert [split(message) for message in heard(from_b)] == [(Envelope(0xB, 42, 8), A)]
    say(b, from_b, wrap(B, Envelope(9, 9)), wrap(B, Envelope(9, 9)))
    assert heard(from_a) == [B]
    bridge.revise(0xC, ())
    say(a, from_a, A)
    assert [split(message) for message in heard(from_b)] == [(Envelope(0xC, 43, 8), A)]
    bridge.revise_side(b, Policy())
    assert bridge.simple
    say(a, from_a, A)
    assert heard(from_b) == [A]


def test_sides_come_and_go_and_counts_of_a_name_go_on() -> None:
    bridge, (a, b), (from_a, from_b) = made(Policy(), Policy())
    c = bridge.side("2", Policy(deny=((7,),)))
    from_c = recorder(c)
    say(a, from_a, A, B)
    assert (heard(from_b), heard(from_c)) == ([A, B], [B])
    b.detach(from_b)
    bridge.remove(b)
    assert [side.number for side in bridge.sides] == [0, 1]
    say(c, from_c, A, B)
    assert heard(from_a) == [B]
    again = bridge.side("1", Policy())
    assert again.stats is b.stats
    c.detach(from_c)
    bridge.remove(c)
    assert bridge.simple


async def test_what_is_held_back_goes_out_when_nobody_shares_the_trunk_any_more() -> None:
    bridge, (a, b), (from_a, from_b) = made(Policy(), Policy(trunk=True, hold_s=60.0, hold_always=True))
    say(a, from_a, A, B)
    assert heard(from_b) == []
    assert b.queued == 2
    bridge.revise_side(b, Policy(trunk=True, hold_s=30.0, hold_always=True, deny=((7,),)))
    assert b.queued == 2
    bridge.revise_side(b, Policy(trunk=True))
    assert [found[1] for found in map(split, heard(from_b)) if found] == [A, B]
    assert b.queued == 0
    assert all(port.stats.balance() == 0 for port in b.ports)
    await asyncio.sleep(0)


def standing_by(trunk: bool) -> tuple[Bridge, list[Side], list[RecordingPipe], Callable[[], object]]:
    may = [False]
    bridge, sides, pipes = made(Policy(), Policy(trunk=trunk), Policy())
    gate = bridge.stand_by(lambda _: may[0])

    def promote() -> object:
        may[0] = True
        return gate.resume()

    return bridge, sides, pipes, promote


def test_a_standby_keeps_what_it_heard_when_other_sides_come_and_go() -> None:
    bridge, (a, b, c), (from_a, from_b, from_c), promote = standing_by(trunk=False)
    say(a, from_a, A)
    say(c, from_c, B)
    b.detach(from_b)
    bridge.remove(b)  # the others get other places
    d = bridge.side("3", Policy())
    from_d = recorder(d)
    say(c, from_c, A)  # it came out there
    promote()
    assert heard(from_a) == [B]
    assert heard(from_c) == []
    assert heard(from_d) == []  # it was not there when they came
    assert heard(from_b) == []
    assert isinstance(bridge.gate, Gate)
    assert bridge.gate.window.stats.balance() == 0
    assert bridge.gate.window.stats.dropped == {"heard": 1}


def test_a_frame_that_was_due_only_on_a_side_that_has_gone_is_given_up() -> None:
    bridge, (a, b, c), (from_a, from_b, from_c), promote = standing_by(trunk=False)
    say(a, from_a, A)
    for side, pipe in ((b, from_b), (c, from_c)):
        side.detach(pipe)
        bridge.remove(side)
    assert isinstance(bridge.gate, Gate)
    assert bridge.gate.window.stats.dropped == {"closed": 1}
    promote()
    assert heard(from_a) == []
    assert bridge.gate.window.stats.balance() == 0


def test_a_standby_stamps_what_it_heard_when_a_side_becomes_a_trunk() -> None:
    bridge, (a, b, _), (from_a, from_b, from_c), promote = standing_by(trunk=False)
    say(a, from_a, A)
    bridge.revise_side(b, Policy(trunk=True))
    promote()
    assert heard(from_c) == [A]
    assert [found[1] for found in map(split, heard(from_b)) if found and found[0]] == [A]
    bridge.stand_alone()
    say(a, from_a, B)
    assert heard(from_c) == [B]
