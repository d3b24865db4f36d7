"""What goes out at a takeover: its forms, and the copies of it that are heard later."""

from types import SimpleNamespace
from typing import Any

import pytest

from bridges.forms import EnvelopedBatch, MixedBatch
from bridges.handover.replay import LATE_S, Due, Replayed, batches_of
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from tests.bridges.handover.windows import OTHER, READING

OPAQUE = b"no frame"
OURS, SHARED = 77, 5


def side(trunk: bool = False, deaf: bool = False) -> Any:
    return SimpleNamespace(trunk=trunk, deaf=deaf)


def test_frames_alone_are_a_plain_batch_and_what_is_none_is_named_beside_them() -> None:
    (plain,) = batches_of([Due(1, READING, 0), Due(1, OTHER, 0)], stamped=False)
    assert (type(plain), payloads(plain)) == (Batch, [READING, OTHER])
    (mixed,) = batches_of([Due(1, READING, 0), Due(1, OPAQUE, 0)], stamped=False)
    assert isinstance(mixed, MixedBatch)
    assert (mixed.opaque, payloads(mixed)) == ((1,), [READING, OPAQUE])


def test_with_envelopes_those_go_to_no_trunk_whose_hops_have_run_out() -> None:
    contents = READING, OPAQUE, OTHER
    due = [Due(1, wrap(one, Envelope(SHARED, n)), n - 1) for n, one in enumerate(contents)]
    (batch,) = batches_of(due, stamped=True)
    assert isinstance(batch, EnvelopedBatch)
    assert (batch.spent, batch.opaque) == ((0,), (1,))
    assert payloads(batch.bare()) == [*contents]


def test_many_frames_are_several_batches() -> None:
    found = batches_of([Due(1, READING, 0)] * 600, stamped=False)
    assert [batch.count for batch in found] == [256, 256, 88]


def heard(replayed: Replayed, number: int, now: float, *messages: bytes) -> tuple[list[bytes], int]:
    """Return what stays of messages that are heard, and how many are late copies."""
    stats = Stats()
    kept = replayed.without_copies(number, from_payloads(messages), stats, now)
    return [] if kept is None else payloads(kept), stats.rejected.get("late", 0)


def test_each_copy_is_taken_out_once_on_the_sides_where_it_can_be_heard_for_a_while() -> None:
    sides = side(), side(deaf=True), side(), side(trunk=True)
    replayed = Replayed()
    replayed.note([Due(0b1010, READING, 0, withheld=0b0001)], sides, None, 100.0)
    assert heard(replayed, 1, 100.1, READING) == ([READING], 0)
    assert heard(replayed, 2, 100.1, READING) == ([READING], 0)
    assert heard(replayed, 3, 100.1, READING) == ([READING], 0)
    assert heard(replayed, 0, 100.1, OTHER, READING, READING) == ([OTHER, READING], 1)


@pytest.mark.parametrize(("after_s", "late"), [(0.0, 1), (LATE_S - 0.01, 1), (LATE_S, 0)])
def test_a_copy_is_late_for_a_while_and_then_new(after_s: float, late: int) -> None:
    replayed = Replayed()
    replayed.note([Due(1, READING, 0)], [side()], None, 100.0)
    assert heard(replayed, 0, 100.0 + after_s, READING) == ([READING][late:], late)


@pytest.mark.parametrize(("origin", "late"), [(OURS, 1), (SHARED, 0)])
def test_a_trunk_knows_copies_by_their_keys_unless_each_candidate_stamps_with_its_own(
    origin: int, late: int
) -> None:
    replayed, copy = Replayed(), wrap(READING, Envelope(9, 9))
    due = Due(0b11, wrap(READING, Envelope(origin, 1)), 7)
    replayed.note([due], [side(), side(trunk=True)], OURS, 100.0)
    assert heard(replayed, 1, 100.1, copy) == ([copy][late:], late)
    assert heard(replayed, 0, 100.1, READING) == ([], 1)
