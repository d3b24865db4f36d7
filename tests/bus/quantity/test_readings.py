"""The last readings of devices: known quantities alone, bounded, and counted beyond."""

from bus.quantity.quantity import Quantity
from bus.quantity.readings import Readings
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern


def frame(*tokens: int | str, data: bytes = b"1") -> bytes:
    return pack(PUB, Pattern(*tokens), data)


def test_the_last_frame_of_each_known_pattern_is_kept_in_the_order_of_the_first() -> None:
    kept = Readings([Quantity(("meter", "power")), Quantity(("meter", "energy"))])
    kept.take([frame("meter", "power"), frame("other"), b"no frame", frame("meter", "energy")], 1.0)
    kept.take([frame("meter", "power", data=b"2")], 2.0)
    found = [(value.frame, value.at_s) for value in kept.read()]
    assert found == [(frame("meter", "power", data=b"2"), 2.0), (frame("meter", "energy"), 1.0)]
    assert kept.left_out == 0


def test_what_is_beyond_the_bound_is_counted_once_a_pattern_and_what_is_kept_stays() -> None:
    kept = Readings([Quantity(("a", 0), any_at=1)], most=3)
    for at_s in (1.0, 2.0):
        kept.take([frame("a", number) for number in range(10_000)], at_s)
    assert [value.at_s for value in kept.read()] == [2.0] * 3
    assert [value.frame for value in kept.read()] == [frame("a", number) for number in range(3)]
    assert kept.left_out == 4096


def test_other_quantities_end_those_before() -> None:
    kept = Readings([Quantity(("a",)), Quantity(("b",))])
    kept.take([frame("a"), frame("b"), frame("c")], 1.0)
    kept.revise([Quantity(("b",)), Quantity(("c",))])
    kept.take([frame("c")], 2.0)
    assert [value.frame for value in kept.read()] == [frame("b"), frame("c")]
