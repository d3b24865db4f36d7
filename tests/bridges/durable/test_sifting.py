"""Which messages a durable trunk keeps: by patterns, or all but what looks for loops of this moment."""

import pytest

from bridges.durable.sifting import KEEP_ALL, Sieve
from bus.watch.canaries import MARK, NONCE_BYTES
from bus.wire.batch import from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack

KEPT = [wrap(pack(1, (7, number), b"x"), Envelope(9, number)) for number in range(2)]
REST = [
    wrap(pack(1, (8,), b"x"), Envelope(9, 2)),
    wrap(pack(1, (7,), b"xy")[:-1], Envelope(9, 3)),  # no frame
    KEPT[0][:12],
]
CANARY = wrap(pack(1, (7,), MARK + bytes(2 * NONCE_BYTES)), Envelope(9, 4))


@pytest.mark.parametrize("messages", [KEPT, REST, [KEPT[0], *REST, KEPT[1]]])
def test_frames_of_the_patterns_are_kept_and_others_told_apart(messages: list[bytes]) -> None:
    found = Sieve([(7,)]).divided(from_payloads(messages))
    kept, rest = (payloads(one) if one is not None else None for one in found)
    assert kept == ([one for one in messages if one in KEPT] or None)
    assert rest == ([one for one in messages if one in REST] or None)


@pytest.mark.parametrize(("messages", "is_kept"), [([CANARY], False), (REST, True), (REST[:1], True)])
def test_without_patterns_all_are_kept_but_a_canary(messages: list[bytes], is_kept: bool) -> None:
    batch = from_payloads(messages)
    assert KEEP_ALL.divided(batch) == ((batch, None) if is_kept else (None, batch))
