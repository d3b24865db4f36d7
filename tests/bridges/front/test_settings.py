"""Which settings of a front are something to do."""

import pytest

from bridges.front.settings import NEUTRAL, Front, Limit
from bus.renaming import Renaming


def test_a_neutral_front_is_nothing_to_do() -> None:
    assert not NEUTRAL
    assert not Front()


@pytest.mark.parametrize(
    "front",
    [
        Front(Renaming(strip=1)),
        Front(refresh_s=1.0),
        Front(limits=(Limit((), 5.0),)),
        Front(opaque=("x",)),
    ],
)
def test_any_setting_is_something_to_do(front: Front) -> None:
    assert front


def test_a_limit_is_of_what_enters_unless_it_is_said() -> None:
    assert not Limit(("x",), 5.0).outward
