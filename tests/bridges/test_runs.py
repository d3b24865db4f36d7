"""Runs compared with the walk, message by message: same result, same order, same counts."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges import runs
from bridges.admission import Admission
from bridges.forms import EnvelopedBatch, MixedBatch, select, strip
from bridges.ingress import admit_bare, admit_stamped, only_frames
from bridges.rules import Rule, Rules, Seen, Verdicts
from bridges.runs import RUN_MIN, Run, cut, find, numbers, verdicts
from bus.ledger import Stats
from bus.wire.batch import LENGTH_BYTES, Batch, from_payloads, payloads
from bus.wire.envelope import ENVELOPE_BYTES, Envelope, wrap
from bus.wire.frame import pack

OWN = 0xB
RULES = (
    Rules(),
    Rules(Rule([(1,)])),
    Rules(Rule([(1,), (2, 5)]), Rule((), [(1, 3), (2,)])),
    Rules(Rule((), [(1, 2, 3)])),
    Rules(Rule([(1, 2)]), Rule([(1, 2, 3), (1, 2, 4)])),
)
tokens = st.lists(st.integers(1, 5), max_size=4)


@st.composite
def run_of(draw: Any) -> list[bytes]:
    """Return messages of one layout, some of them invalid; sometimes a second layout interrupts the run."""
    count = draw(st.sampled_from([1, 3, RUN_MIN, RUN_MIN + 1, 60, 300]))
    size, some = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    patterns = draw(st.lists(st.tuples(*[st.integers(1, 5)] * some), min_size=1, max_size=5))
    frames = [pack(n % 3, patterns[n % len(patterns)], bytes((n & 0xFF,)) * size) for n in range(count)]
    kind = draw(st.sampled_from(["bare", "bare", "enveloped", "spent", "own", "flags", "repeated", "junk"]))
    first = draw(st.integers(0, 3000)) if kind != "repeated" else 7
    if kind in ("bare", "junk"):
        return frames if kind == "bare" else [bytes((n & 0xFF,)) * 9 for n in range(count)]
    odd = draw(st.integers(0, count - 1))
    return [
        wrap(
            frame,
            Envelope(
                OWN if kind == "own" and n == odd else 0xC + n % 2,
                first + (n if kind != "repeated" else n // 2),
                0 if kind == "spent" and n % 3 == 0 else 15 - n % 15,
                8 if kind == "flags" and n == odd else 0,
            ),
        )
        for n, frame in enumerate(frames)
    ]


batches = st.lists(run_of(), min_size=1, max_size=4).map(
    lambda runs: from_payloads([message for run in runs for message in run])
)
rules = st.sampled_from(RULES)


def admission(rules: Rules) -> Admission:
    seen = Seen()
    return Admission(OWN, rules, seen.add, is_new_spent=seen.add_spent)


def walked(call: Any) -> Any:
    """Return the result of `call` when no run is ever found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "find", lambda *_: None)
        return call()


def both(call: Any) -> None:
    assert call() == walked(call)


def account(stats: Stats) -> dict[str, int]:
    return stats.rejected | stats.dropped


@given(batches, rules)
def test_admit_is_the_same_with_runs_and_without(batch: Batch, rules: Rules) -> None:
    def outcome() -> object:
        stats = Stats()
        out = admit_bare(batch, admission(rules), stats)
        return out and (out.count, bytes(out.data)), account(stats)

    both(outcome)


@given(batches, rules, st.sampled_from([0, 250, 0xFFFFFFF0]))
def test_admit_stamped_is_the_same(batch: Batch, rules: Rules, sequence: int) -> None:
    def outcome() -> object:
        stats = Stats()
        out, last = admit_stamped(batch, admission(rules), sequence, stats)
        seen = out and (out.count, out.keep(), out.spent, payloads(out.bare()), payloads(out))
        return seen, last, account(stats)

    both(outcome)


@given(batches)
def test_only_frames_is_the_same(batch: Batch) -> None:
    both(lambda: only_frames(batch))


@given(st.lists(tokens, min_size=1, max_size=80), rules, st.booleans())
def test_strip_and_select_are_the_same(patterns: list[list[int]], rules: Rules, enveloped: bool) -> None:
    frames = [pack(1, [*p, 1, 2, 3, 4][:4], b"x") for p in patterns for _ in range(3)]
    messages = [wrap(frame, Envelope(1, n)) for n, frame in enumerate(frames)] if enveloped else frames
    batch = from_payloads(messages)

    def outcome() -> object:
        stats = Stats()
        out = select(batch, ENVELOPE_BYTES if enveloped else 0, rules, stats)
        return out and (out.count, bytes(out.data)), account(stats)

    both(outcome)
    if enveloped:
        assert payloads(strip(batch)) == frames


def equal(count: int, size: int = 8) -> list[bytes]:
    return [pack(1, (1, n), bytes(size)) for n in range(count)]


@pytest.mark.parametrize(("count", "found"), [(RUN_MIN - 1, 0), (RUN_MIN, RUN_MIN), (1000, 1000)])
def test_a_run_is_found_from_16_on(count: int, found: int) -> None:
    run = find(from_payloads(equal(count)).keep(), 0, count)
    assert (run.messages if run else 0) == found


def odd_ones() -> Iterable[tuple[str, bytes]]:
    yield "longer", pack(1, (1, 1), bytes(9))
    yield "as long, with another number of tokens", pack(1, (1, 1, 1), bytes(4))
    yield "as long, but no frame", bytes(len(equal(1)[0]))


@pytest.mark.parametrize("odd", [frame for _, frame in odd_ones()], ids=[name for name, _ in odd_ones()])
@pytest.mark.parametrize("at", [RUN_MIN, 20, 299])
def test_a_run_ends_before_the_first_message_of_another_layout(odd: bytes, at: int) -> None:
    messages = equal(300)
    messages[at] = odd
    run = find(from_payloads(messages).keep(), 0, 300)
    assert run is not None
    assert run.messages == at


def test_a_run_never_goes_on_behind_the_number_that_was_asked_for() -> None:
    run = find(from_payloads(equal(300)).keep(), 0, 40)
    assert run is not None
    assert run.messages == 40


def test_a_message_that_is_longer_by_16_mib_ends_a_run_though_it_looks_like_many() -> None:
    """The lower three bytes of its length are those of the others, and so is all that is in it."""
    small = equal(1)[0]
    one = from_payloads([small]).keep()
    many = (1 << 24) // len(one) + 1
    large = (small + one * many)[: (1 << 24) + len(small)]
    data = one * (RUN_MIN - 1) + (len(large)).to_bytes(LENGTH_BYTES, "big") + large
    assert find(data, 0, RUN_MIN) is None


@pytest.mark.parametrize("count", [16, 255, 256, 257, 600])
def test_what_is_cut_is_every_message(count: int) -> None:
    messages = equal(count)
    data = from_payloads(messages).keep()
    run = Run(0, count, LENGTH_BYTES + len(messages[0]), LENGTH_BYTES)
    assert cut(data, run, LENGTH_BYTES, len(messages[0])) == messages
    assert [n & 0xFFFFFFFF for n in numbers(data, run, LENGTH_BYTES + 4)] == list(range(count))


def test_stamps_count_over_their_bytes_and_over_the_end() -> None:
    frames = equal(700)
    out, last = admit_stamped(from_payloads(frames), Admission(OWN, Rules(), Seen().add), 0xFFFFFF00, Stats())
    assert isinstance(out, EnvelopedBatch)
    expected = [wrap(f, Envelope(OWN, (0xFFFFFF01 + n) & 0xFFFFFFFF)) for n, f in enumerate(frames)]
    assert payloads(out) == expected
    assert last == (0xFFFFFF00 + 700) & 0xFFFFFFFF


@given(tokens, rules)
def test_a_verdict_is_what_the_rules_say_of_the_frame(names: list[int], rules: Rules) -> None:
    frame = pack(1, names, b"\0\0\0\1" * 4)
    data = from_payloads([frame] * RUN_MIN).keep()
    run = find(data, 0, RUN_MIN)
    assert run is not None
    passes = verdicts(data, run, rules)
    assert (passes and list(passes)) == (None if rules.admit(frame, 0) else [False] * RUN_MIN)


def test_verdicts_are_bounded_and_right_afterwards() -> None:
    remembered, most = Verdicts([Rule([(7,)])]), 0
    for n in range(10_000):
        assert remembered[n.to_bytes(4, "big")] == (n == 7)
        most = max(most, len(remembered))
    assert most == 4096
    assert remembered[b"\0\0\0\7"]


@pytest.mark.parametrize("count", [1, 3 * RUN_MIN])
def test_what_one_side_filters_out_another_may_still_admit(count: int) -> None:
    """It was not admitted, so a second copy, by a trunk without that filter, is no duplicate."""
    seen, stats = Seen(), Stats()
    batch = from_payloads([wrap(pack(1, (2,), b"x"), Envelope(0xC, n, 5)) for n in range(count)])
    assert admit_stamped(batch, Admission(OWN, RULES[1], seen.add), 0, stats)[0] is None
    assert stats.rejected == {"pattern": count}
    admitted, _ = admit_stamped(batch, Admission(OWN, RULES[0], seen.add), 0, stats)
    assert admitted is not None
    assert admitted.count == count
    assert admit_stamped(batch, Admission(OWN, RULES[0], seen.add), 0, stats)[0] is None
    assert stats.rejected == {"pattern": count, "duplicate": count}


def test_the_smallest_frame_enters_in_its_envelope_too() -> None:
    message, stats = wrap(pack(1, ()), Envelope(0xC, 1, 5)), Stats()
    admission = Admission(OWN, Rules(), lambda _: True)
    stamped, _ = admit_stamped(from_payloads([message]), admission, 0, stats)
    bare = admit_bare(from_payloads([message]), admission, stats)
    assert stamped is not None
    assert bare is not None
    assert payloads(stamped) == [wrap(pack(1, ()), Envelope(0xC, 1, 4))]
    assert payloads(bare) == [pack(1, ())]
    assert stats.rejected == {}


@pytest.mark.parametrize("count", [1, 3, 3 * RUN_MIN])
def test_what_came_without_envelopes_is_not_copied_to_leave_so(count: int) -> None:
    batch = from_payloads(equal(count))
    out, last = admit_stamped(batch, Admission(OWN, Rules(), Seen().add), 0, Stats())
    assert out is not None
    assert out.bare() is batch
    assert last == count
    mixed = from_payloads([*equal(count), wrap(pack(1, (9,)), Envelope(0xC, 1, 5))])
    out, last = admit_stamped(mixed, Admission(OWN, Rules(), Seen().add), 0, Stats())
    assert out is not None
    assert payloads(out.bare()) == [*equal(count), pack(1, (9,))]
    assert last == count


def test_of_opaque_messages_alone_no_frames_are_left() -> None:
    data = from_payloads([b"one", pack(1, (1,)), b"two"]).keep()
    left = MixedBatch(data, 3, (0, 2)).frames()
    assert left is not None
    assert payloads(left) == [pack(1, (1,))]
    assert MixedBatch(from_payloads([b"one", b"two"]).keep(), 2, (0, 1)).frames() is None
