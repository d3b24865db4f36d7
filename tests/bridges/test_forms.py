"""The forms of a batch inside a bridge number messages right; what leaves is what rules let out."""

from collections import Counter
from itertools import combinations, product
from typing import NamedTuple

import pytest

from bridges.forms import EnvelopedBatch, MixedBatch, leaving, renumbered, without
from bridges.rules import Rule, Rules
from bridges.runs import RUN_MIN
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
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


class Message(NamedTuple):
    content: bytes
    framed: bool = True
    spent: bool = False

    def enveloped(self, number: int) -> bytes:
        return wrap(self.content, Envelope(0xC, number, 0 if self.spent else 5))


WANTED, OTHER, HELLO = Message(pack(1, (7, 1), b"x")), Message(pack(1, (8,), b"ab")), Message(b"hello", False)
KINDS = [one._replace(spent=spent) for one in (WANTED, OTHER, HELLO) for spent in (False, True)]
RULES = [Rules(), Rules(Rule([(7,)])), Rules(Rule(deny=[(7,)])), Rules(Rule(deny=[(9,)]))]
FEW = [list(some) for length in (1, 2, 3) for some in product(KINDS, repeat=length)]
MANY = [[one] * RUN_MIN + [other] * RUN_MIN for one, other in product(KINDS, repeat=2)]


def batch_of(messages: list[Message], enveloped: bool) -> Batch:
    opaque = tuple(number for number, one in enumerate(messages) if not one.framed)
    if not enveloped:
        plain = from_payloads([one.content for one in messages])
        return MixedBatch(plain.keep(), plain.count, opaque) if opaque else plain
    whole = from_payloads([one.enveloped(number) for number, one in enumerate(messages)])
    spent = tuple(number for number, one in enumerate(messages) if one.spent)
    return EnvelopedBatch(whole.keep(), whole.count, None, spent, opaque)


def expected(
    messages: list[Message], enveloped: bool, trunk: bool, opaque: bool, rules: Rules
) -> tuple[list[bytes], Counter[str]]:
    left, dropped = list[bytes](), Counter[str]()
    for number, one in enumerate(messages):
        if not one.framed and not opaque:
            dropped["no frame"] += 1
        elif one.spent and enveloped and trunk:
            dropped["hops"] += 1
        elif one.framed and rules and not rules.admit(one.content):
            dropped["pattern"] += 1
        else:
            left.append(one.enveloped(number) if enveloped and trunk else one.content)
    return left, dropped


@pytest.mark.parametrize("rules", RULES, ids=["all", "some", "no wanted", "all wanted"])
@pytest.mark.parametrize("opaque", [False, True], ids=["frames only", "opaque"])
@pytest.mark.parametrize(
    ("enveloped", "trunk"), [(False, False), (True, False), (True, True)], ids=["plain", "bare", "trunk"]
)
def test_what_leaves_is_what_a_plain_account_says(
    enveloped: bool, trunk: bool, opaque: bool, rules: Rules
) -> None:
    for messages in FEW + MANY:
        batch, stats = batch_of(messages, enveloped), Stats()
        out = leaving(batch, trunk, opaque, rules, stats)
        left, dropped = expected(messages, enveloped, trunk, opaque, rules)
        assert (payloads(out) if out else []) == left
        assert out is None or out.count == len(left) > 0
        assert stats.dropped == dropped


@pytest.mark.parametrize("rules", [RULES[0], RULES[3]])
@pytest.mark.parametrize("count", [1, 2 * RUN_MIN])
def test_where_all_may_leave_nothing_is_copied(rules: Rules, count: int) -> None:
    plain, enveloped = batch_of([WANTED] * count, False), batch_of([WANTED] * count, True)
    assert isinstance(enveloped, EnvelopedBatch)
    assert leaving(plain, False, True, rules, Stats()) is plain
    assert leaving(enveloped, True, True, rules, Stats()) is enveloped
    assert leaving(enveloped, False, True, rules, Stats()) is enveloped.bare()
