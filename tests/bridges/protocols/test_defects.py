"""A defect of a protocol: it costs what it was given, is told, and no exception reaches the bus."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

import pytest

from bridges.protocols.protocol import Protocol
from bridges.protocols.translator import FAILED, Sent, Translator, Turn, Wire
from bus.ledger import Stats
from bus.wire.frame import pack


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


class Naive(Translator[bytes]):
    """A translator that gives a text where a token is due, and which is made with another argument."""

    def __init__(self, record: Protocol, wire: Wire, more: str) -> None:
        super().__init__(wire)

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        return [pack(1, ("gps",), b"")]  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole(Protocol):
    """A protocol whose translators can be imported, and not made."""

    MAKE: ClassVar = f"{__name__}:Naive"
    key: ClassVar = "whole"
    help: ClassVar = "a protocol"
    items: ClassVar = ("bytes",)


def test_the_place_is_in_the_protocol_and_not_in_what_it_called() -> None:
    made = Naive(Whole(), Wire("w", "bytes", Stats()), "")
    assert made.take([b"a"], 1.0) == []
    assert "FrameError: token 'gps'" in made.condition
    assert "(test_defects.py:" in made.condition


def test_one_that_cannot_be_made_says_that_it_is_a_defect_and_where() -> None:
    with pytest.raises(ValueError, match=r"the protocol has a defect: TypeError: .*'more' \(protocol.py:"):
        Whole().translator(Wire("w", "bytes", Stats()))


class Deep(Translator[bytes]):
    """A translator that fails while it is made, in what it calls."""

    def __init__(self, record: Protocol, wire: Wire) -> None:
        Fraction("1/0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deeper(Whole):
    """A protocol with such translators."""

    MAKE: ClassVar = f"{__name__}:Deep"


def test_one_that_fails_while_it_is_made_says_where_in_its_own_package() -> None:
    with pytest.raises(ValueError, match=r"a defect: ZeroDivisionError: .* \(test_defects.py:"):
        Deeper().translator(Wire("w", "bytes", Stats()))
