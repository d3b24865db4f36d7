"""What every translator does around its protocol: counts of items, and when each message came."""

from collections.abc import Sequence

from bridges.protocols.translator import UNTOLD, Translator, Wire
from bus.ledger import Stats


class Letters(Translator[bytes]):
    """A translator of which each letter is a message, `?` is told as none, and anything else is not told."""

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        made = [bytes([one]) for item in items for one in item if chr(one).isalpha()]
        self.found += len(made)
        for _ in range(b"".join(items).count(b"?")):
            self.reject("unmatched")
        return made


def test_of_frames_each_item_counts_and_those_of_which_nothing_is_told_are_rejected() -> None:
    stats = Stats()
    letters = Letters(Wire("w", "frames", stats))
    for round_ in range(1, 4):
        assert letters.take([b"a", b"?", b"-", b"b"], 1.0) == [b"a", b"b"]
        assert stats.items == 4 * round_
        assert stats.rejected == {"unmatched": round_, UNTOLD: round_}


def test_of_bytes_items_count_as_they_are_told_apart() -> None:
    stats = Stats()
    letters = Letters(Wire("w", "bytes", stats))
    for round_ in range(1, 4):
        assert letters.take([b"ab?-"], 1.0) == [b"a", b"b"]
        assert stats.items == 3 * round_
        assert stats.rejected == {"unmatched": round_}


def test_each_message_came_with_its_item_if_the_medium_knows_when_that_did() -> None:
    letters = Letters(Wire("w", "frames", Stats()))
    assert letters.take([b"ab", b"-", b"c"], 1.0, [10, 20, 30]) == [b"a", b"b", b"c"]
    assert letters.came_ns == [10, 10, 30]
    letters.take([b"a"], 2.0)
    assert len(letters.came_ns) == 0
