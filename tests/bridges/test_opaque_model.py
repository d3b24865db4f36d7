"""Any messages through bridges that carry any: each is accounted for, as a plain model says."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bridges.bridge import Bridge
from bridges.policy import Policy
from bus.patch import join
from bus.wire.envelope import Envelope, is_enveloped, take_apart, wrap
from bus.wire.frame import pack
from tests.bridges.opaque_sides import HELLO, OWN, bus_and_trunk, make
from tests.bridges.opaque_support import old_verdict
from tests.bridges.support import FRAME, balanced, frame, recorder, say

anything = st.one_of(
    st.sampled_from([FRAME, frame(4), pack(0xE1, (7,)), HELLO, b"", bytes(4000)]),
    st.binary(max_size=40),
    st.binary(max_size=20).map(lambda rest: b"\xe1\x08\xf0\x00" + rest),
    st.builds(
        lambda content, key, hops: wrap(content, Envelope(key[0], key[1], hops)),
        st.sampled_from([FRAME, HELLO, b""]),
        st.tuples(st.sampled_from([1, OWN]), st.integers(0, 3)),
        st.integers(0, 15),
    ),
)
runs = st.lists(st.tuples(anything, st.integers(1, 20)), max_size=6).map(
    lambda pairs: [message for message, times in pairs for _ in range(times)]
)


@given(runs)
def test_no_message_is_one_for_an_old_appliance_that_is_none_for_us(messages: list[bytes]) -> None:
    bridge = make()
    plain, trunk = bus_and_trunk(bridge)
    speaker, wire = recorder(plain), recorder(trunk)
    say(plain, speaker, *messages)
    for message in wire.messages:
        assert is_enveloped(message)
        old = "enveloped" if take_apart(message).is_frame else "malformed"
        assert old_verdict(message) == old


@given(st.lists(st.tuples(st.integers(0, 4), runs), max_size=6), st.booleans(), st.booleans())
def test_every_message_is_accounted_for(
    sends: list[tuple[int, list[bytes]]], stamps: bool, filtered: bool
) -> None:
    bridge = make()
    sides = [
        bridge.side("a", Policy(opaque=True)),
        bridge.side("b", Policy(trunk=stamps, opaque=True)),
        bridge.side("c", Policy(opaque=True, deny=[(7,)] if filtered else ())),
        bridge.side("field"),
        bridge.side("field trunk", Policy(trunk=stamps)),
    ]
    pipes = [recorder(side) for side in sides]
    for which, messages in sends:
        say(sides[which], pipes[which], *messages)
    assert balanced(bridge)
    for side, pipe in zip(sides, pipes, strict=True):
        whole = [take_apart(message) for message in pipe.messages]
        assert all(parts.envelope is not None for parts in whole) or not side.trunk
        assert side.lets_out_opaque or all(parts.is_frame for parts in whole)


@given(runs)
def test_what_one_peer_says_reaches_another_bus_unchanged(messages: list[bytes]) -> None:
    """Of a plain peer, unless it speaks in envelopes itself."""
    said = [message for message in messages if take_apart(message).envelope is None]
    near, far = make(), Bridge("far", 0xFA)
    (near_plain, near_trunk), (far_plain, far_trunk) = bus_and_trunk(near), bus_and_trunk(far)
    join(near_trunk, far_trunk)
    speaker, here, there = recorder(near_plain), recorder(near_plain), recorder(far_plain)
    say(near_plain, speaker, *said)
    assert here.messages == there.messages == said
    assert speaker.messages == []


class Model:
    """A slow and plain account of what a bridge lets through: one message after the other, by its parts."""

    def __init__(self, trunk: bool) -> None:
        self.trunk, self.sequence = trunk, 41
        self.seen = set[tuple[int, int, bool]]()
        self.passed: list[tuple[bytes, int, bool]] = []  # content, hops, whether it is a frame
        self.rejected = Counter[str]()

    def enter(self, message: bytes) -> None:
        envelope, content, framed = take_apart(message)
        if envelope is None and self.trunk and not framed and is_enveloped(message):
            self.rejected["malformed"] += 1
        elif envelope is not None and envelope.origin == OWN:
            self.rejected["echo"] += 1
        elif envelope is not None and self._is_known(envelope):
            self.rejected["duplicate"] += 1
        else:
            hops = 9 if envelope is None else envelope.hops
            self.seen |= set() if envelope is None else {(*envelope[:2], hops > 0)}
            self.passed.append((content, hops, framed))

    def _is_known(self, envelope: Envelope) -> bool:
        """Without hops left it is new only if nothing is known; with hops, unless it came with hops."""
        spent = () if envelope.hops else ((*envelope[:2], False),)
        return not self.seen.isdisjoint({(*envelope[:2], True), *spent})

    def out(self, trunk: bool, opaque: bool) -> list[bytes]:
        return [c for c, hops, framed in self.passed if (framed or opaque) and (hops > 0 or not trunk)]


@given(st.lists(runs, max_size=3), st.booleans(), st.booleans())
def test_a_bridge_does_what_a_plain_account_of_it_says(
    batches: list[list[bytes]], trunk: bool, stamps: bool
) -> None:
    bridge, model = make(), Model(trunk)
    source = bridge.side("source", Policy(trunk=trunk, opaque=True))
    kinds = [(False, True), (False, False), *([(True, True), (True, False)] if stamps else [])]
    sides = [bridge.side(str(n), Policy(trunk=kind[0], opaque=kind[1])) for n, kind in enumerate(kinds)]
    speaker, heard = recorder(source), [recorder(side) for side in sides]
    for batch in batches:
        say(source, speaker, *batch)
        for message in batch:
            model.enter(message)
    assert source.ports[0].stats.rejected == model.rejected
    for pipe, kind in zip(heard, kinds, strict=True):
        parts = [take_apart(message) for message in pipe.messages]
        assert [
            part.content if kind[0] else message for part, message in zip(parts, pipe.messages, strict=True)
        ] == model.out(*kind)
    assert balanced(bridge)
