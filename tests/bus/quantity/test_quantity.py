"""The description of values."""

from bus.quantity.quantity import Quantity


def test_a_value_of_which_nothing_is_known_is_a_number_in_text() -> None:
    one = Quantity(("meter", "power"))
    assert (one.form, one.unit, one.low, one.high, dict(one.choices), one.writable) == (
        "text",
        "",
        None,
        None,
        {},
        False,
    )
