"""How many frames a driver may have: what the bus carried lately, within bounds."""

import pytest

from bridges.media.can.window import Window


def test_it_doubles_at_most_until_it_has_what_the_bus_carries() -> None:
    window, found = Window(0.01), list[int]()
    window.begin(0.0)
    for step in range(1, 6):
        window.confirm(step / 1000, 8)  # 8,000 frames a second: 80 in 10 ms
        found.append(window.most)
    assert found == [20, 40, 80, 80, 80]
    window.confirm(1.005, 100)
    assert window.most == 10


@pytest.mark.parametrize(("span_s", "most"), [(0.0, 10), (0.0004, 10), (0.0006, 12), (0.1, 20)])
def test_frames_that_are_confirmed_at_once_are_as_quick_as_any_bus(span_s: float, most: int) -> None:
    window = Window(span_s)
    window.begin(5.0)
    window.confirm(5.0, 1)
    assert window.most == most


def test_a_driver_that_refuses_is_given_no_more_from_then_on_but_never_less_than_the_least() -> None:
    window = Window(0.01, 4)
    for step in range(1, 6):
        window.confirm(step / 1000, 8)
    window.refuse(30)
    assert window.most == 30
    window.confirm(0.006, 8)
    assert window.most == 30
    window.refuse(1)
    assert window.most == 4
