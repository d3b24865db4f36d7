"""Batches of several kinds of messages keep the numbers of these right when some are taken out."""

from itertools import combinations

from bridges.enveloped import EnvelopedBatch, MixedBatch, renumbered, without
from bus.wire.batch import from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack

COUNT = 5
SUBSETS = [some for size in range(COUNT + 1) for some in combinations(range(COUNT), size)]
FRAMES = [pack(1, (number,)) for number in range(COUNT)]


def test_numbers_are_those_of_the_same_messages_after_others_are_taken_out() -> None:
    for numbers in SUBSETS:
        for gone in SUBSETS:
            rest = [number for number in range(COUNT) if number not in gone]
            assert [rest[new] for new in renumbered(numbers, gone)] == [n for n in numbers if n not in gone]


def test_a_batch_without_some_messages_has_the_others_in_order() -> None:
    batch = from_payloads(FRAMES)
    for gone in SUBSETS:
        left = without(batch, gone)
        assert payloads(left) == [frame for number, frame in enumerate(FRAMES) if number not in gone]
        assert left.count == COUNT - len(gone)


def test_what_is_left_of_a_batch_is_of_its_kind_with_new_numbers() -> None:
    mixed = MixedBatch(from_payloads(FRAMES).keep(), COUNT, (1, 3))
    left = mixed.keeping(without(mixed, (0, 1)), (0, 1))
    assert isinstance(left, MixedBatch)
    assert (payloads(left), left.opaque) == (FRAMES[2:], (1,))
    enveloped = [wrap(frame, Envelope(7, number)) for number, frame in enumerate(FRAMES)]
    whole = EnvelopedBatch(from_payloads(enveloped).keep(), COUNT, None, (2, 4), (1, 3))
    less = whole.keeping(without(whole, (0, 2)), (0, 2))
    assert isinstance(less, EnvelopedBatch)
    assert (payloads(less.bare()), less.spent, less.opaque) == (
        [FRAMES[1], FRAMES[3], FRAMES[4]],
        (2,),
        (0, 1),
    )


def test_frames_of_a_batch_with_envelopes_know_which_of_them_are_spent() -> None:
    enveloped = [wrap(frame, Envelope(7, number)) for number, frame in enumerate(FRAMES)]
    whole = EnvelopedBatch(from_payloads(enveloped).keep(), COUNT, None, (0, 4), (1, 3))
    frames = whole.frames()
    assert isinstance(frames, EnvelopedBatch)
    assert (payloads(frames), frames.spent) == ([enveloped[0], enveloped[2], enveloped[4]], (0, 2))
    assert whole.frames() is frames  # made once for all sides


def test_a_batch_without_opaque_messages_is_its_own_frames() -> None:
    plain = MixedBatch(from_payloads(FRAMES).keep(), COUNT, ())
    assert plain.frames() is plain
