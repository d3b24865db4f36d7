"""What enters a bridge, compared with a plain account of it: one message after the other, each copied."""

from collections import Counter
from collections.abc import Iterator
from itertools import count, product
from zlib import crc32

import pytest

from bridges.admission import BARE, Admission, hops_of
from bridges.forms import EnvelopedBatch, MixedBatch
from bridges.ingress import admit_bare, admit_stamped, only_frames
from bridges.rules import Rule, Rules, Seen
from bridges.runs import RUN_MIN, WALK
from bus.ledger import Stats
from bus.wire.batch import from_payloads, payloads
from bus.wire.envelope import ENVELOPE_BYTES, Envelope, is_enveloped, take_apart, wrap
from bus.wire.frame import is_frame, pack

OWN = 0xB
WANTED, OTHER = pack(1, (7, 1), b"x"), pack(1, (8,))
SINGLE = {
    "wanted": WANTED,
    "other": OTHER,
    "smallest": pack(1, ()),
    "largest data": pack(1, (7, 1), bytes(2048)),
    "too much data": b"\1\2\x08\1" + bytes(8 + 2049),
    "too few tokens": pack(1, (7,), b"\0\0\0\1"),
    "opaque": b"hello",
    "short": b"\1\0\0",
    "empty": b"",
    "hops 15": wrap(WANTED, Envelope(0xC, 1, 15)),
    "last hop": wrap(WANTED, Envelope(0xC, 2, 1)),
    "spent": wrap(WANTED, Envelope(0xC, 3, 0)),
    "other in an envelope": wrap(OTHER, Envelope(0xC, 4)),
    "ours": wrap(WANTED, Envelope(OWN, 5)),
    "opaque in an envelope": wrap(b"hello", Envelope(0xC, 6, 2)),
    "opaque and spent": wrap(b"hello", Envelope(0xC, 7, 0)),
    "flags": wrap(WANTED, Envelope(0xC, 8, 8, 1)),
    "a byte too many": WANTED + b"x",
}
RULES = {
    "all": Rules(),
    "some": Rules(Rule([(7, 1)])),
    "either": Rules(Rule([(8, 1), (7, 1)])),
    "denied": Rules(Rule(deny=[(8,)])),
    "two rules": Rules(Rule([(7,)]), Rule(deny=[(7, 2)])),
}


def numbered(message: bytes, number: int) -> bytes:
    """Return a message with a sequence number of its own, if it has an envelope."""
    if not is_enveloped(message):
        return message
    return message[:8] + (message[11] + 100 * number).to_bytes(4, "big") + message[ENVELOPE_BYTES:]


def many(message: bytes, count: int, every: int = 1) -> list[bytes]:
    """Return a run of a message; every so many share a sequence number."""
    return [numbered(message, number // every) for number in range(count)]


def batches() -> Iterator[list[bytes]]:
    """Yield single messages, pairs, runs, what interrupts runs, and a walk that is longer than one."""
    kinds = list(SINGLE.values())
    yield from ([one] for one in kinds)
    yield from ([one, other] for one, other in product(kinds, repeat=2))
    for one in kinds:
        yield many(one, RUN_MIN)
        yield many(one, 2 * RUN_MIN, 2)
        yield from ([*many(one, RUN_MIN), other, *many(one, RUN_MIN, 3)] for other in kinds[1::4])
    yield (kinds * WALK)[: 2 * WALK + 3] + many(WANTED, RUN_MIN)
    yield [*many(SINGLE["hops 15"], RUN_MIN), *many(SINGLE["spent"], RUN_MIN)] * 2
    alike = pack(1, (8, 1), b"x")
    yield [WANTED, alike, alike] * RUN_MIN
    yield [*[alike] * RUN_MIN, WANTED]
    yield [wrap(WANTED if n % 3 else alike, Envelope(0xC, n // 2)) for n in range(2 * RUN_MIN)]
    mixed = many(SINGLE["hops 15"], 2 * RUN_MIN)
    for at, odd in product((0, 5, 2 * RUN_MIN - 1), ("last hop", "spent", "ours", "flags")):
        yield [*mixed[:at], numbered(SINGLE[odd], 99), *mixed[at + 1 :]]


BATCHES = list(batches())


def make(rules: Rules, opaque: bool, trunk: bool) -> Admission:
    seen = Seen()
    return Admission(OWN, rules, seen.add, opaque, trunk, seen.add_spent)


class Account:
    """The messages that may enter, each as its content and the envelope in which it came."""

    def __init__(self, messages: list[bytes], admission: Admission) -> None:
        self.stats = Stats()
        self.passed: list[tuple[bytes, Envelope | None]] = []
        for message in messages:
            if is_frame(message):
                self._frame(message, admission)
            elif (hops := hops_of(message, 0, len(message), admission, self.stats)) >= 0:
                parts = take_apart(message)
                bare = hops == BARE
                self.passed.append((message, None) if bare else (parts.content, parts.envelope))

    def _frame(self, message: bytes, admission: Admission) -> None:
        if admission.rules.admit(message):
            self.passed.append((message, None))
        else:
            self.stats.reject("pattern")

    @property
    def contents(self) -> list[bytes]:
        return [content for content, _ in self.passed]

    @property
    def opaque(self) -> tuple[int, ...]:
        return tuple(number for number, one in enumerate(self.contents) if not is_frame(one))

    def stamped(self, sequence: int) -> tuple[list[bytes], tuple[int, ...], int]:
        """Return the messages in envelopes, the numbers of those that are spent, and the last sequence."""
        made, spent = list[bytes](), list[int]()
        for number, (content, envelope) in enumerate(self.passed):
            if envelope is None:
                sequence = (sequence + 1) % (1 << 32)
                envelope = Envelope(OWN, sequence, 9)
            if not envelope.hops:
                spent.append(number)
            made.append(wrap(content, envelope._replace(hops=max(0, envelope.hops - 1))))
        return made, tuple(spent), sequence


cases = pytest.mark.parametrize(
    ("rules", "opaque", "trunk"),
    [(rules, *kind) for rules in RULES.values() for kind in ((False, False), (True, False), (True, True))],
    ids=[f"{rules}, {kind}" for rules in RULES for kind in ("frames", "opaque", "trunk")],
)


@cases
def test_what_enters_a_bridge_without_trunks_is_bare(rules: Rules, opaque: bool, trunk: bool) -> None:
    for messages in BATCHES:
        batch, stats = from_payloads(messages), Stats()
        account = Account(messages, make(rules, opaque, trunk))
        out = admit_bare(batch, make(rules, opaque, trunk), stats)
        assert (payloads(out) if out else []) == account.contents
        assert out is None or out.count == len(account.contents) > 0
        assert (out.opaque if isinstance(out, MixedBatch) else ()) == account.opaque
        assert stats.rejected == account.stats.rejected
        assert (out is batch) == (account.contents == messages and not account.opaque)


@cases
@pytest.mark.parametrize("sequence", [0, 0xFFFFFFFE])
def test_what_enters_a_bridge_with_trunks_has_an_envelope(
    rules: Rules, opaque: bool, trunk: bool, sequence: int
) -> None:
    for messages in BATCHES:
        batch, stats = from_payloads(messages), Stats()
        account = Account(messages, make(rules, opaque, trunk))
        made, spent, last = account.stamped(sequence)
        out, number = admit_stamped(batch, make(rules, opaque, trunk), sequence, stats)
        assert number == last
        assert stats.rejected == account.stats.rejected
        assert (out is None) == (made == [])
        if out is not None:
            assert (payloads(out), out.count, out.spent, out.opaque) == (
                made,
                len(made),
                spent,
                account.opaque,
            )
            assert payloads(out.bare()) == account.contents
            assert (out.bare() is batch) == (account.contents == messages)


@pytest.mark.parametrize("times", [1, 3, 40])
def test_who_stamps_by_content_does_so_for_what_came_without_an_envelope_only(times: int) -> None:
    messages = [WANTED, SINGLE["hops 15"], OTHER, b"hello", SINGLE["opaque in an envelope"]]
    said = [message for message in messages for _ in range(times)]
    numbers = count(1)

    def keys_of(contents: list[bytes]) -> list[int]:
        return [crc32(content) << 32 | next(numbers) for content in contents]

    out, last = admit_stamped(from_payloads(said), make(Rules(), True, False), 41, Stats(), keys_of)
    assert isinstance(out, EnvelopedBatch)
    found = [take_apart(message) for message in payloads(out)]
    assert [part.content for part in found] == [
        *[WANTED] * (times + 1),
        *[OTHER] * times,
        *[b"hello"] * (times + 1),
    ]
    made = [part.envelope for part in found]
    stamped = [one for one in made if one and one.origin != 0xC]
    contents = [WANTED] * times + [OTHER] * times + [b"hello"] * times
    assert stamped == [Envelope(crc32(content), n, 8) for n, content in enumerate(contents, 1)]
    assert [made[times], made[-1]] == [Envelope(0xC, 1, 14), Envelope(0xC, 6, 1)]
    assert last == 41 + 3 * times


def test_a_batch_is_of_frames_only_if_every_message_is_one() -> None:
    for messages in BATCHES:
        assert only_frames(from_payloads(messages)) == all(map(is_frame, messages))


def test_the_kinds_are_rejected_for_different_reasons() -> None:
    """So that the comparison is about something."""
    counted = Counter[str]()
    for messages in BATCHES:
        counted += Counter(Account(messages, make(RULES["some"], True, True)).stats.rejected)
    assert set(counted) == {"pattern", "echo", "duplicate", "no frame", "malformed"}
