"""Keys in envelopes: of runs of one layout, and of others, alike."""

import pytest

from bridges.durable.keys import keys_of, rekeyed, singles
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack

COUNT = 40


def enveloped(number: int, size: int = 8) -> bytes:
    return wrap(pack(1, (7,), number.to_bytes(4, "big") + bytes(size)), Envelope(9, 1000 + number))


BATCHES = {
    "a run": [enveloped(n) for n in range(COUNT)],
    "sizes that differ": [enveloped(n, n % 3) for n in range(COUNT)],
    "a run and another": [*(enveloped(n) for n in range(COUNT)), enveloped(99, 50)],
    "one bare among them": [*(enveloped(n) for n in range(COUNT)), b"bare"],
    "one": [enveloped(0)],
}


@pytest.mark.parametrize("name", BATCHES)
def test_each_message_has_its_key_and_gets_a_new_one(name: str) -> None:
    bodies = BATCHES[name]
    batch, numbers = from_payloads(bodies), [5 + 3 * n for n in range(len(bodies))]
    assert list(keys_of(batch)) == [b"" if one == b"bare" else one[4:12] for one in bodies]
    assert [one.count for one, _ in singles(batch)] == [1] * len(bodies)
    assert [(*payloads(one), key) for one, key in singles(batch)] == [
        *zip(bodies, keys_of(batch), strict=True)
    ]
    made = rekeyed(batch, 0x0000000200000001, numbers)
    assert made.count == batch.count
    for old, new, number in zip(bodies, payloads(made), numbers, strict=True):
        key = (3).to_bytes(4, "big") + number.to_bytes(4, "big")
        assert new == (old if old == b"bare" else old[:4] + key + old[12:])


def test_no_messages_have_no_keys() -> None:
    assert list(keys_of(Batch(b"", 0))) == []
