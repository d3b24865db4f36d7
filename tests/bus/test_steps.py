"""Tests of work in steps: portions are all things, and the result of all steps is handed on."""

from bus.steps import PORTION, Steps, finish, portions


def test_portions_are_all_things_in_their_order() -> None:
    for count in (0, 1, PORTION, PORTION + 1, 3 * PORTION):
        found = list(portions(range(count)))
        assert [one for some in found for one in some] == list(range(count))
        assert all(0 < len(some) <= PORTION for some in found)


def test_steps_are_finished_with_their_result() -> None:
    done = list[int]()

    def steps() -> Steps[str]:
        for number in range(3):
            done.append(number)
            yield
        return "made"

    assert (finish(steps()), done) == ("made", [0, 1, 2])
