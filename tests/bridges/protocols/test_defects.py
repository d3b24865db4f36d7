"""A defect of a protocol: it costs what it was given, is told, and no exception reaches the bus."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import pytest

from bridges.protocols.translator import FAILED, Sent, Translator, Turn, Wire
from bus.ledger import Stats


class Broken(Translator[bytes]):
    """A translator that raises wherever it is asked."""

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        raise KeyError("speed")

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        raise ValueError("two\nlines")

    def each(self, messages: Sequence[bytes], now_s: float) -> Sequence[bytes] | None:
        raise IndexError

    def turn(self, now_s: float) -> Turn[bytes]:
        raise ZeroDivisionError("division by zero")

    def end(self, now_s: float) -> list[bytes]:
        raise RuntimeError("at the end")


CALLS: dict[str, tuple[Callable[[Broken], Any], Any, int, str]] = {
    "receive": (lambda one: one.take([b"a", b"b"], 1.0), [], 2, "KeyError: 'speed'"),
    "receive_stamped": (lambda one: one.take([b"a", b"b"], 1.0, [1, 2]), [], 2, "KeyError: 'speed'"),
    "send": (lambda one: one.give(b"m", 1.0), Sent(why=FAILED), 0, "ValueError: two?lines"),
    "each": (lambda one: one.give_all([b"m"], 1.0), None, 0, "IndexError: "),
    "turn": (lambda one: one.advance(1.0), Turn(), 1, "ZeroDivisionError: division by zero"),
    "end": (lambda one: one.finish(1.0), [], 1, "RuntimeError: at the end"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_exception_leaves_it(call: tuple[Callable[[Broken], Any], Any, int, str]) -> None:
    ask, due, rejected, words = call
    broken = Broken(Wire("w", "frames", Stats()))
    broken.due_s = 1.0
    assert ask(broken) == due
    assert broken.wire.stats.rejected.get(FAILED, 0) == rejected
    assert broken.condition.startswith(f"the protocol has a defect: {words} (test_defects.py:")
    assert broken.due_s == (inf if ask is CALLS["turn"][0] else 1.0)  # else it would be asked without a pause
