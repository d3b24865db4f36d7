"""Permits: what passes of a batch, whatever its messages look like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.permits import Permit, refuses
from bus.transports.peers import Peer
from bus.wire.batch import from_payloads, payloads
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import pack, unpack
from bus.wire.pattern import Pattern

tokens = st.lists(st.integers(0, 2), max_size=3).map(tuple)
frames = st.builds(lambda names, data: pack(1, names, data), tokens, st.binary(max_size=4))
enveloped = st.builds(lambda frame, number: wrap(frame, Envelope(7, number)), frames, st.integers(0, 9))
opaque = st.binary(max_size=20)
runs = st.builds(lambda message, count: [message] * count, frames | enveloped | opaque, st.integers(1, 40))


@given(st.none() | st.lists(tokens, max_size=3).map(tuple), st.lists(runs, min_size=1, max_size=4))
def test_what_passes_is_what_patterns_say(
    patterns: tuple[tuple[int, ...], ...] | None, parts: list[list[bytes]]
) -> None:
    def passes(message: bytes) -> bool:
        if patterns is None or () in patterns:
            return True
        found = take_apart(message)
        names = unpack(found.content).tokens if found.is_frame else ()
        return found.is_frame and any(Pattern(*pattern).matches(names) for pattern in patterns)

    messages = [message for part in parts for message in part]
    batch = from_payloads(messages)
    out = Permit(patterns).permitted(batch)
    kept = [message for message in messages if passes(message)]
    assert (payloads(out) if out else []) == kept
    assert out is None or out.count == len(kept)
    assert (out is batch) == (len(kept) == len(messages))


A, B = (("a",),), (("b",),)


@pytest.mark.parametrize(
    ("peers", "sending", "hearing"),
    [
        ([], False, False),
        ([Peer()], False, False),
        ([Peer(send=B, hear=A)], True, False),
        ([Peer(send=A, hear=())], False, True),
        ([Peer(send=B, hear=B), Peer(send=A, hear=B)], False, True),
    ],
)
def test_an_address_refuses_what_no_peer_on_its_list_may_send_or_hear(
    peers: list[Peer], sending: bool, hearing: bool
) -> None:
    batch = from_payloads([pack(1, Pattern("a"), b"1")])
    assert (refuses(peers, batch, True), refuses(peers, batch, False)) == (sending, hearing)
