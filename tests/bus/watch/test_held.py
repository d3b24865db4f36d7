"""What waits while a trial is on: it is counted by pipe, and taken in order."""

from bus.hub import Hub
from bus.watch.held import Held
from bus.wire.batch import Batch, from_payloads, payloads
from tests.helpers.peers import Ear

HUB = Hub("h")
ONE, OTHER = Ear(HUB), Ear(HUB)
FIRST, SECOND = [b"a", b"bb"], [b"c", b"looked for", b"d"]


def holding() -> Held:
    held = Held()
    for pipe, messages in ((ONE, FIRST), (OTHER, [b"x"]), (ONE, SECOND)):
        held.put(pipe, from_payloads(messages))
    return held


def size(*messages: bytes) -> int:
    return len(from_payloads(messages).data)


def test_what_waits_is_counted_by_pipe_until_it_is_taken() -> None:
    held = holding()
    assert (held.counts, held.bytes) == ({ONE: 5, OTHER: 1}, size(*FIRST, *SECOND, b"x"))
    assert held.pipes() == [ONE, OTHER]
    assert [payloads(one) for one in held.take(ONE)] == [FIRST, SECOND]
    assert (held.counts, held.bytes, held.pipes()) == ({ONE: 0, OTHER: 1}, size(b"x"), [OTHER])
    assert list(held.take(ONE)) == []


def test_what_is_taken_first_ends_with_the_message_that_is_looked_for() -> None:
    def split(batch: Batch) -> tuple[Batch, Batch | None] | None:
        some = payloads(batch)
        if b"looked for" not in some:
            return None
        place = some.index(b"looked for") + 1
        return from_payloads(some[:place]), from_payloads(some[place:]) if some[place:] else None

    held = holding()
    assert [payloads(one) for one in held.take_first(ONE, split)] == [FIRST, SECOND[:2]]
    assert (held.counts, held.bytes) == ({ONE: 1, OTHER: 1}, size(b"d", b"x"))
    held.put(ONE, from_payloads([b"looked for"]))
    assert [payloads(one) for one in held.take_first(ONE, split)] == [[b"d"], [b"looked for"]]
    assert (held.counts[ONE], held.pipes()) == (0, [OTHER])
