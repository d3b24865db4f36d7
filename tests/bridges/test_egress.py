"""What leaves by a side, compared with a plain account of it: one message after the other, by its parts."""

from collections import Counter
from itertools import product
from typing import NamedTuple

import pytest

from bridges.egress import leaving
from bridges.enveloped import EnvelopedBatch, MixedBatch
from bridges.rules import Rule, Rules
from bridges.runs import RUN_MIN
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack


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
