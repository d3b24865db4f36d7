"""Messages that are no frames: through buses and bridges without a pattern, and nowhere else."""

import logging
from collections import Counter
from collections.abc import Callable

import pytest

from bridges.bridge import Bridge
from bridges.policy import Policy
from bus.balance import imbalances
from bus.patch import join
from bus.watch.watched import WatchedHub
from bus.wire.batch import Batch, from_payloads
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import is_frame, pack
from tests.bridges.opaque_sides import HELLO, OWN, bus_and_trunk, make
from tests.bridges.opaque_support import old_verdict
from tests.bridges.support import FRAME, balanced, frame, recorder, say

LARGE = bytes(range(256)) * 4096


@pytest.mark.parametrize("messages", [[HELLO], [b""], [LARGE], [FRAME, HELLO, frame(40), b"", LARGE, b"abc"]])
def test_a_bus_with_a_trunk_carries_any_message(messages: list[bytes]) -> None:
    bridge = make()
    plain, trunk = bus_and_trunk(bridge)
    speaker, listener, wire = recorder(plain), recorder(plain), recorder(trunk)
    say(plain, speaker, *messages)
    assert listener.messages == messages
    assert speaker.messages == []
    assert wire.messages == [wrap(message, Envelope(OWN, 42 + n)) for n, message in enumerate(messages)]
    assert balanced(bridge)


@pytest.mark.parametrize("messages", [[HELLO], [b""], [FRAME, HELLO, frame(40), b"", LARGE]])
def test_the_next_appliance_takes_the_envelopes_off(messages: list[bytes]) -> None:
    bridge = make()
    plain, trunk = bus_and_trunk(bridge)
    wire, further, listener = recorder(trunk), recorder(trunk), recorder(plain)
    say(trunk, wire, *(wrap(message, Envelope(1, n, 3)) for n, message in enumerate(messages)))
    assert listener.messages == messages
    assert further.messages == [wrap(message, Envelope(1, n, 2)) for n, message in enumerate(messages)]
    assert balanced(bridge)


def test_duplicates_echoes_and_hops_of_opaque_messages_are_those_of_frames() -> None:
    bridge = make()
    plain, trunk = bus_and_trunk(bridge)
    wire, further, listener = recorder(trunk), recorder(trunk), recorder(plain)
    say(trunk, wire, *[wrap(HELLO, Envelope(1, 7, 0))] * 2, wrap(HELLO, Envelope(OWN, 1)))
    assert listener.messages == [HELLO]
    assert further.messages == []
    assert trunk.ports[0].stats.rejected == {"duplicate": 1, "echo": 1}
    assert trunk.ports[1].stats.dropped == {"hops": 1}
    say(trunk, wire, wrap(FRAME, Envelope(1, 7, 0)))  # frames and other messages are numbered together
    assert trunk.ports[0].stats.rejected == {"duplicate": 2, "echo": 1}
    say(trunk, wire, *[wrap(HELLO, Envelope(1, 7))] * 2, wrap(HELLO, Envelope(1, 7, 0)))
    assert [take_apart(message).content for message in further.messages] == [HELLO]
    assert trunk.ports[0].stats.rejected == {"duplicate": 4, "echo": 1}
    assert balanced(bridge)


def test_what_is_no_envelope_on_a_trunk_is_malformed_and_on_a_plain_side_a_message() -> None:
    odd = [
        b"\xe1\x08\xf0\x05" + bytes(9),  # the length of a frame, but none
        b"\xe1\x18\xf0\x00" + bytes(20),  # flags
        wrap(HELLO, Envelope(1, 2))[:12] + FRAME,  # a frame that is called opaque
    ]
    bridge = make()
    plain, trunk = bus_and_trunk(bridge)
    speaker, listener, wire = recorder(plain), recorder(plain), recorder(trunk)
    say(trunk, wire, *odd)
    assert listener.messages == []
    assert trunk.ports[0].stats.rejected == {"malformed": 3}
    say(plain, speaker, *odd)
    assert listener.messages == odd
    assert [take_apart(message).content for message in wire.messages] == odd
    assert balanced(bridge)


def test_a_foreign_peer_on_a_trunk_address_is_heard_too() -> None:
    bridge = make()
    plain, trunk = bus_and_trunk(bridge)
    wire, listener = recorder(trunk), recorder(plain)
    say(trunk, wire, HELLO)
    assert listener.messages == [HELLO]


def test_a_bridge_without_a_pattern_carries_any_message_between_buses() -> None:
    bridge = make()
    a, b = bridge.side("a", Policy(opaque=True)), bridge.side("b", Policy(opaque=True))
    from_a, from_b = recorder(a), recorder(b)
    say(a, from_a, HELLO, FRAME, b"", wrap(LARGE, Envelope(1, 2)))
    assert from_b.messages == [HELLO, FRAME, b"", LARGE]
    assert bridge.simple
    assert balanced(bridge)


@pytest.mark.parametrize("trunk", [False, True])
def test_onto_a_field_medium_only_frames_go_and_that_is_told_once(
    trunk: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = make()
    bus, can = bridge.side("bus", Policy(opaque=True)), bridge.side("can", Policy(trunk=trunk))
    app, other, wire = recorder(bus), recorder(bus), recorder(can)
    with caplog.at_level(logging.WARNING, "buscoupler.bridges"):
        say(bus, app, HELLO, FRAME, b"", frame(40))
        say(bus, app, HELLO)
    assert other.messages == [HELLO, FRAME, b"", frame(40), HELLO]
    assert [take_apart(message).content for message in wire.messages] == [FRAME, frame(40)]
    assert can.ports[0].stats.dropped == {"no frame": 3}
    assert [record.getMessage() for record in caplog.records] == [
        "b, side can: dropped a message that is no TMQ frame, because this medium carries frames only; "
        "others are only counted (`buscoupler send`, Bus.send or docs/wire/frame.md make frames; "
        "`opaque: PATTERN` at the side of a bus makes one of each message that comes in there)"
    ]
    assert balanced(bridge)


def test_a_field_medium_brings_frames_only() -> None:
    bridge = make()
    bus, can = bridge.side("bus", Policy(opaque=True)), bridge.side("can", Policy(trunk=True))
    app, wire = recorder(bus), recorder(can)
    say(can, wire, HELLO, wrap(HELLO, Envelope(1, 2)), wrap(FRAME, Envelope(1, 3)))
    assert app.messages == [FRAME]
    assert can.ports[0].stats.rejected == {"malformed": 2}
    assert balanced(bridge)


@pytest.mark.parametrize("trunk", [False, True])
def test_a_bridge_with_a_pattern_takes_frames_only(trunk: bool, caplog: pytest.LogCaptureFixture) -> None:
    bridge = make(pattern=(7,))
    a, b = bridge.side("a", Policy(opaque=True)), bridge.side("b", Policy(trunk=trunk, opaque=True))
    from_a, from_b = recorder(a), recorder(b)
    wanted = pack(1, (7, 1), b"x")
    caplog.set_level(logging.INFO, "buscoupler.bridges")
    say(a, from_a, HELLO, wanted, b"", wrap(HELLO, Envelope(1, 2)), FRAME)
    assert [take_apart(message).content for message in from_b.messages] == [wanted]
    assert a.ports[0].stats.rejected == {"no frame": 3, "pattern": 1}
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "because a pattern takes frames only" in caplog.text
    assert balanced(bridge)


@pytest.mark.parametrize("where", ["allow", "allow_out"])
def test_a_side_that_allows_patterns_takes_frames_only(where: str) -> None:
    bridge = make()
    a, b = bridge.side("a", Policy(opaque=True)), bridge.side("b", Policy(opaque=True, **{where: [(7,)]}))  # type: ignore[arg-type]
    c = bridge.side("c", Policy(opaque=True))
    from_a, from_b, from_c = recorder(a), recorder(b), recorder(c)
    say(a, from_a, HELLO, pack(1, (7,)))
    assert from_b.messages == [pack(1, (7,))]
    assert b.ports[0].stats.dropped == {"no frame": 1}
    assert from_c.messages == [HELLO, pack(1, (7,))]
    say(b, from_b, HELLO)
    assert from_a.messages == ([HELLO] if where == "allow_out" else [])
    assert balanced(bridge)


@pytest.mark.parametrize("trunk", [False, True])
def test_what_is_denied_has_tokens(trunk: bool) -> None:
    bridge = make()
    a = bridge.side("a", Policy(opaque=True, deny_in=[(9,)]))
    b = bridge.side("b", Policy(trunk=trunk, opaque=True, deny_out=[(7,)]))
    from_a, from_b = recorder(a), recorder(b)
    spent = wrap(FRAME, Envelope(1, 3, 0)) if trunk else FRAME
    say(a, from_a, HELLO, pack(1, (7,)), pack(1, (9,)), b"", spent, frame(40), wrap(HELLO, Envelope(1, 2)))
    left = [HELLO, b"", frame(40), HELLO] if trunk else [HELLO, b"", FRAME, frame(40), HELLO]
    assert [take_apart(message).content for message in from_b.messages] == left
    assert b.ports[0].stats.dropped == {"pattern": 1} | ({"hops": 1} if trunk else {})
    assert a.ports[0].stats.rejected == {"pattern": 1}
    assert balanced(bridge)


def test_an_empty_pattern_is_no_pattern() -> None:
    bridge = make(pattern=())
    a, b = bridge.side("a", Policy(opaque=True, allow=[()])), bridge.side("b", Policy(opaque=True))
    from_a, from_b = recorder(a), recorder(b)
    say(a, from_a, HELLO)
    assert from_b.messages == [HELLO]


def test_two_bridges_in_a_row_hand_mixed_batches_on() -> None:
    """What one bridge has sorted, the next one sorts by itself."""
    one, two, bus = make(), Bridge("c", 0xC), WatchedHub("between")
    plain, _ = bus_and_trunk(one)
    join(one.side("out", Policy(opaque=True)), bus)
    join(bus, two.side("in", Policy(opaque=True)))
    can = two.side("can", Policy(trunk=True))
    speaker, wire = recorder(plain), recorder(can)
    say(plain, speaker, HELLO, FRAME, b"")
    assert [take_apart(message).content for message in wire.messages] == [FRAME]
    assert balanced(one)
    assert balanced(two)


VECTORS = {  # as they were and are on the wire, with what an old appliance takes them for
    "02020005112233445566778868656c6c6f": "frame",
    "e108f011a1b2c3d40000000702020005112233445566778868656c6c6f": "enveloped",
    "e108f000a1b2c3d40000000868656c6c6f": "malformed",
    "e108f000a1b2c3d400000009": "malformed",
}


def test_old_and_new_appliances_agree_on_frozen_bytes() -> None:
    bridge = make()
    plain, trunk = bus_and_trunk(bridge)
    wire, listener = recorder(trunk), recorder(plain)
    messages = [bytes.fromhex(text) for text in VECTORS]
    assert [old_verdict(message) for message in messages] == list(VECTORS.values())
    say(trunk, wire, *messages)
    assert listener.messages == [FRAME, FRAME, HELLO, b""]


def test_old_appliances_take_frames_and_drop_the_rest_by_count() -> None:
    """`old_verdict` has the rules of those who do not know opaque messages."""
    bridge = make()
    plain, trunk = bus_and_trunk(bridge)
    speaker, wire = recorder(plain), recorder(trunk)
    say(plain, speaker, FRAME, HELLO, b"", LARGE, frame(4), frame(3072), b"\xe1\x08\xf0\x00" + bytes(4096))
    expected = ["enveloped", *["malformed"] * 3, "enveloped", "enveloped", "malformed"]
    assert [old_verdict(message) for message in wire.messages] == expected


def test_a_loop_of_opaque_messages_is_found_by_an_opaque_canary() -> None:
    bridge = make()
    sides = bridge.side("a", Policy(opaque=True)), bridge.side("b", Policy(opaque=True)), bridge.side("field")
    near, far, field = [recorder(side) for side in sides]
    bridge.ask(b"round and round", bridge.pipes)
    assert not is_frame(near.messages[0])
    assert field.messages == []  # it is opaque as well
    say(sides[1], far, near.messages[0])
    assert bridge.loops == 1
    assert balanced(bridge) or bridge.cuts


def test_a_guest_on_a_plain_side_is_cut_and_not_the_trunk_that_came_later() -> None:
    bridge = make()
    plain, trunk = bus_and_trunk(bridge)
    guest, appliance = recorder(plain), recorder(trunk)
    guest.accepted = appliance.accepted = True
    bridge.ask(b"round and round", plain.ports)
    say(trunk, appliance, wrap(guest.messages[0], Envelope(1, 1)))
    assert [cut.pipe for cut in bridge.cuts] == [plain.ports[0]]


@pytest.mark.parametrize("word", [b"round and round", FRAME])
def test_a_ring_of_trunks_does_not_bring_canaries_back_as_new(word: bytes) -> None:
    """Equal readings of two peers are suspicious. What tries that out must not take the ring for a loop."""
    ring = [Bridge(f"b{number}", number, clock=lambda: 0.0) for number in (1, 2, 3)]
    for one, other in zip(ring, ring[1:] + ring[:1], strict=True):
        join(
            one.side(f"to {other.name}", Policy(trunk=True, opaque=True)),
            other.side(one.name, Policy(trunk=True, opaque=True)),
        )
    plain = ring[0].side("plain", Policy(opaque=True))
    ear = recorder(plain)
    ring[0].ask(word, ring[0].pipes)
    assert ear.messages  # a canary was out
    assert [bridge.loops for bridge in ring] == [0, 0, 0]


def test_what_a_cut_trunk_brings_does_not_hide_the_copy_that_comes_by_another() -> None:
    bridge = make()
    plain, trunk = bus_and_trunk(bridge)
    ear, near, far = recorder(plain), recorder(trunk, "near"), recorder(trunk, "far")
    speaker, late = recorder(plain), recorder(trunk, "late")
    bridge.ask(b"round and round", (plain.ports[1],))
    say(trunk, late, wrap(speaker.messages[0], Envelope(1, 1)))
    assert [cut.pipe.inner for cut in bridge.cuts] == [late]
    ear.messages.clear()
    for pipe in (late, near, far):
        say(trunk, pipe, wrap(FRAME, Envelope(1, 2)))
    assert late.stats.received == sum(
        port.stats.received + sum(port.stats.rejected.values()) for port in trunk.ports if port.inner is late
    )
    assert ear.messages == [FRAME]


@pytest.mark.parametrize("stamps", [True, False])
def test_what_came_with_a_canary_goes_on_in_its_own_form(stamps: bool) -> None:
    bridge = make()
    near = bridge.side("near", Policy(trunk=stamps, opaque=True))
    sides = (
        bridge.side("plain", Policy(opaque=True)),
        bridge.side("field"),
        bridge.side("trunk", Policy(stamps, opaque=True)),
    )
    speaker, (plain, field, trunk) = recorder(near), [recorder(side) for side in sides]
    bridge.ask(b"opaque", sides[0].ports)
    canary = plain.messages.pop()
    contents = [pack(1, (1,), b"a"), canary, b"opaque", pack(1, (1,), b"b"), canary, b"more"]
    hops = [1, 1, 0, 0, 1, 1]
    plain.accepted = True
    say(
        near,
        speaker,
        *(wrap(c, Envelope(1, n, h)) for n, (c, h) in enumerate(zip(contents, hops, strict=True))),
    )
    assert [cut.pipe.inner for cut in bridge.cuts] == [plain]
    rest = [content for content in contents if content != canary]
    assert field.messages == [rest[0], rest[2]]
    left = [take_apart(message).content for message in trunk.messages]
    assert left == ([rest[0], rest[3]] if stamps else rest)


@pytest.mark.parametrize("stamps", [True, False])
def test_what_is_held_goes_on_in_its_order_and_its_own_form(stamps: bool) -> None:
    """An enveloped batch borrows the buffer of its decoder, which has read on when the batch goes on."""
    now, due = [0.0], list[Callable[[], None]]()
    bridge = Bridge("b", OWN, clock=lambda: now[0], sequence=41)
    bridge.call_later = lambda _, call: due.append(call)
    sides = [bridge.side(name, Policy(opaque=True)) for name in ("one", "other")]
    trunk = bridge.side("trunk", Policy(stamps, opaque=True))
    one, other, wire = recorder(sides[0]), recorder(sides[1]), recorder(trunk)
    for _ in range(64):
        say(sides[0], one, HELLO)
        say(sides[1], other, HELLO)
    assert len(wire.messages) < 128
    buffer = bytearray(from_payloads([HELLO, b"1", FRAME]).data)
    sides[0].publish(Batch(memoryview(buffer), 3), one)
    buffer[:] = bytes(len(buffer))
    assert imbalances([bridge]) == []
    now[0] = 1.0
    due[-1]()
    left = [take_apart(message).content for message in wire.messages]
    assert Counter(left) == {HELLO: 129, b"1": 1, FRAME: 1}
    assert left.index(b"1") < left.index(FRAME)
    assert other.messages == [HELLO] * 65 + [b"1", FRAME]
    assert imbalances([bridge]) == []
