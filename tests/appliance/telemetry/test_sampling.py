"""All gateways choose the same messages and make the same ids."""

import pytest

from appliance.telemetry.sampling import STEP_NS, sampled, span_id, trace_id
from bus.wire.batch import from_payloads
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import PUB, pack


def message(sequence: int, size: int = 5) -> bytes:
    return wrap(pack(PUB, (1,), bytes(size)), Envelope(0x07FFFFFF, sequence))


@pytest.mark.parametrize("one_in", [1, 2, 128, 256, 1024])
@pytest.mark.parametrize("sizes", [(5,), (5, 6)])  # a run of equal sizes, and none
@pytest.mark.parametrize("count", [1, 7, 2100])
def test_multiples_of_the_ratio_are_chosen_whatever_the_batch(
    one_in: int, sizes: tuple[int, ...], count: int
) -> None:
    messages = [message(number, sizes[number % len(sizes)]) for number in range(1000, 1000 + count)]
    expected = [one for number, one in enumerate(messages, 1000) if number % one_in == 0]
    assert list(sampled(from_payloads(messages), one_in)) == expected


def test_an_id_is_the_same_for_hops_of_a_message_and_another_when_its_number_comes_back() -> None:
    near, far = (wrap(message(9)[12:], Envelope(7, 9, hops)) for hops in (8, 3))
    ids = {trace_id(take_apart(one).envelope.key, 0) for one in (near, far)}  # type: ignore[union-attr]
    assert len(ids) == 1
    assert len(ids | {trace_id(7 << 32 | 9, STEP_NS)}) == 2
    trace = ids.pop()
    assert (len(trace), len(span_id(trace))) == (32, 16)
    assert len({span_id(trace), span_id(trace, "gw/bridge a"), span_id(trace, "gw/bridge b")}) == 3


def test_ids_and_their_steps_are_those_of_gateways_of_all_versions() -> None:
    """The first step of this key ends at 13.98 s."""
    known = ("f3faad01a6b44ac15a3850471c2aa0d0", "f21746295324bf751b9ae2a7c78cc0b2")
    assert tuple(trace_id(7 << 32 | 9, ms * 1_000_000) for ms in (13_980, 13_981)) == known
