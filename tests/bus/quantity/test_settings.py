"""The settings of values that all share."""

import pytest

from bus.quantity.raw import Layout
from bus.quantity.settings import check_scaled, is_number


@pytest.mark.parametrize(
    ("scale", "offset"), [(0, 0), (float("nan"), 0), (float("inf"), 0), (1, float("nan"))]
)
def test_a_scale_is_a_line_that_can_be_gone_back(scale: float, offset: float) -> None:
    check_scaled(Layout("u16", 2), 0.5, -40)
    with pytest.raises(ValueError, match="finite"):
        check_scaled(Layout("u16", 2), scale, offset)


def test_text_and_truth_are_no_numbers_and_have_no_scale() -> None:
    assert [is_number(kind) for kind in ("u16", "f64", "bool", "ascii", "bits")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    with pytest.raises(ValueError, match="no scale"):
        check_scaled(Layout("bool", 1), 2, 0)
