"""The scale: decimal, exact, and back without rounding."""

from decimal import Decimal
from math import inf, isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.quantity.forms import text_of
from bus.quantity.scale import Scale


@pytest.mark.parametrize(
    ("raw", "scale", "offset", "text"),
    [
        (214, 0.1, 0, "21.4"),
        (3, 0.1, 0, "0.3"),
        (0, 0.1, -40, "-40"),
        (0, -0.1, 0, "0"),
        ((1 << 64) - 1, 1, 0, "18446744073709551615"),
        ((1 << 64) - 1, 0.1, 0, "1844674407370955161.5"),
        (-(1 << 63), 10, 0, "-92233720368547758080"),
        (5, 1e-7, 0, "0.0000005"),
        (5, 1e-9, 0, "5e-9"),
    ],
)
def test_a_value_has_the_digits_that_a_person_expects(
    raw: int, scale: float, offset: float, text: str
) -> None:
    assert text_of(Scale.of(scale, offset).value(raw)) == text


@given(
    st.integers(-(1 << 63), (1 << 64) - 1),
    st.floats(1e-12, 1e12) | st.floats(-1e12, -1e-12),
    st.floats(-1e9, 1e9),
)
def test_each_raw_number_comes_back(raw: int, scale: float, offset: float) -> None:
    one = Scale.of(scale, offset)
    assert one.raw(one.value(raw)) == raw


def test_between_two_steps_there_is_no_integer() -> None:
    assert not isinstance(Scale.of(0.1).raw(Decimal("21.45")), int)
    assert not isinstance(Scale.of(3).raw(1), int)
    assert Scale.of(3).raw(9) == 3


def test_a_float_has_the_raw_number_of_its_digits_and_one_too_great_has_none() -> None:
    assert Scale.of(0.1).raw(21.4) == 214
    assert Scale().raw(Decimal("1e400")) == 10**400
    with pytest.raises(ValueError, match="is out of range"):
        Scale().raw(Decimal("1e401"))


def test_what_is_not_finite_stays_so_and_turns_with_the_scale() -> None:
    assert Scale.of(-2).value(inf) == Scale.of(-2).raw(inf) == -inf
    assert Scale.of(2).value(inf) == Scale.of(2).raw(inf) == inf
    assert isnan(Scale.of(2).value(nan))
    assert text_of(Scale().value(-0.0)) == "-0"
