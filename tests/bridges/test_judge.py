"""A judge of the patterns on a wire judges those inside the bridge by their names on the wire."""

import pytest

from bridges.judge import Renamed, Tokens
from bus.renaming import Renaming


class Parity:
    """A judge: even patterns come in, odd ones are sent."""

    def enters(self, tokens: Tokens) -> bool:
        return sum(tokens) % 2 == 0

    def leaves(self, tokens: Tokens) -> bool:
        return sum(tokens) % 2 == 1


@pytest.mark.parametrize(
    ("tokens", "enters", "leaves"), [((7, 2), True, False), ((7, 3), False, True), ((8, 2), False, False)]
)
def test_what_has_no_name_on_the_wire_does_not_pass(tokens: Tokens, enters: bool, leaves: bool) -> None:
    judge = Renamed(Renaming(prefix=(7,)), Parity())
    assert (judge.enters(tokens), judge.leaves(tokens)) == (enters, leaves)


@pytest.mark.parametrize("tokens", [(2,), (3,)])
def test_where_names_are_stripped_by_number_all_may_come_in_and_nothing_leaves(tokens: Tokens) -> None:
    judge = Renamed(Renaming(strip=1), Parity())
    assert (judge.enters(tokens), judge.leaves(tokens)) == (True, False)
