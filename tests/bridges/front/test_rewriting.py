"""Batches get other tokens as their frames one by one do, whatever lies among them, and keys stay."""

import random
from collections import Counter
from functools import partial

import pytest

from bridges.front.rewriting import Turns, rewritten
from bus.renaming import Renaming
from bus.wire.batch import from_payloads, payloads
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import pack, unpack
from bus.wire.pattern import Pattern

A, B, C, P = (("a",), ("b",), ("c",), ("p", "q"))
KINDS = [Renaming(prefix=P), Renaming(strip=A), Renaming(strip=2), Renaming(rename=((A, B), (P, C)))]
KINDS += [Renaming(rename=((A, P),))]
HEADS = [(), A, B, C, P, (*A, *A), (*A, 7), ("a",) * 254, ("a",) * 255]


def one_by_one(renaming: Renaming, messages: list[bytes], inward: bool) -> tuple[list[bytes], Counter[str]]:
    """Return what should come out, and what should be counted: slow, and written down from the rules."""
    found, refused = list[bytes](), Counter[str]()
    for message in messages:
        envelope, content, is_whole = take_apart(message)
        if not is_whole:
            found.append(message)
            continue
        kind, tokens, data = unpack(content)
        turn = (renaming.entering if inward else renaming.leaving)(tokens)
        new = () if turn is None else turn.of(tokens)
        if turn is None or len(new) > 255:
            refused["no name" if turn is None else "tokens"] += 1
            continue
        made = pack(kind, new, data)
        found.append(made if envelope is None else wrap(made, envelope))
    return found, refused


def count(counts: Counter[str], why: str, number: int) -> None:
    counts[why] += number


def message(source: random.Random) -> bytes:
    frame = pack(source.choice((1, 1, 5)), Pattern(*source.choice(HEADS)), bytes(source.randrange(9)))
    kinds = (frame, frame, wrap(frame, Envelope(source.randrange(1 << 32), 7)), b"opaque", b"", frame + b"x")
    return source.choice(kinds)


@pytest.mark.parametrize("inward", [True, False])
@pytest.mark.parametrize("number", range(len(KINDS)))
def test_mixed_messages_change_as_they_do_one_by_one(number: int, inward: bool) -> None:
    renaming, source = KINDS[number], random.Random(number)
    turns = Turns(renaming.entering if inward else renaming.leaving, renaming.reach)
    for _ in range(60):
        messages = [message(source) for _ in range(source.randrange(40))]
        if source.random() < 0.5:  # a run, with or without another kind of message in it
            messages += [message(source)] * source.choice((15, 16, 17, 300))
            messages.insert(source.randrange(len(messages)), message(source))
        expected, refused, counts = *one_by_one(renaming, messages, inward), Counter[str]()
        made = rewritten(from_payloads(messages), turns, partial(count, counts))
        assert ([] if made is None else payloads(made)) == expected
        assert counts == refused


@pytest.mark.parametrize("enveloped", [False, True])
@pytest.mark.parametrize("kinds", [(1,), (1, 5)])
@pytest.mark.parametrize("names", [("a",), ("a", "b", "c"), ("c", "x"), ("x", "y")])
@pytest.mark.parametrize("more", [0, 253])  # tokens: two, and as many as a frame can have
def test_a_long_run_is_cut_at_once_and_keeps_keys_and_data(
    enveloped: bool, kinds: tuple[int, ...], names: tuple[str, ...], more: int
) -> None:
    frames = [
        pack(kinds[n % len(kinds)], Pattern(names[n % len(names)], *[7] * more, n), n.to_bytes(2))
        for n in range(1000 if not more else 40)
    ]
    messages = [wrap(one, Envelope(9, n, 3)) for n, one in enumerate(frames)] if enveloped else frames
    for renaming in KINDS:
        turns = Turns(renaming.entering, renaming.reach)
        counts = Counter[str]()
        made = rewritten(from_payloads(messages), turns, partial(count, counts))
        assert ((payloads(made) if made else []), counts) == one_by_one(renaming, messages, True)


def test_a_batch_that_nothing_changes_is_the_same_object() -> None:
    renaming = Renaming(rename=((A, B),))
    batch = from_payloads([pack(1, Pattern("c", n)) for n in range(20)])
    assert rewritten(batch, Turns(renaming.entering, renaming.reach), lambda *_: None) is batch


def test_a_wrong_envelope_is_not_made_right() -> None:
    renaming = KINDS[0]
    wrong = bytearray(wrap(pack(1, Pattern("a"), b"12"), Envelope(1, 2)))
    wrong[3] += 1
    made = rewritten(from_payloads([bytes(wrong)]), Turns(renaming.entering, renaming.reach), lambda *_: None)
    assert made is not None
    assert payloads(made) == [wrong]
