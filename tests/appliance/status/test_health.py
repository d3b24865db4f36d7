"""The verdict on a gateway: the worst word, and its reasons in a line."""

import pytest

from appliance.status.health import REASONS, Concern, Health, verdict

LOST, BROKEN = Concern("degraded", "bus p", "lost 3"), Concern("trouble", "bus q", "is down")


@pytest.mark.parametrize(
    ("concerns", "line"),
    [
        ([], "ok"),
        ([LOST], "degraded: bus p: lost 3"),
        ([LOST, BROKEN], "trouble: bus q: is down (and 1 more)"),
        ([LOST] * 40, "degraded: bus p: lost 3 (and 39 more)"),
    ],
)
def test_the_line_has_the_first_of_the_worst_reasons_and_counts_the_others(
    concerns: list[Concern], line: str
) -> None:
    assert verdict(concerns).line() == line


def test_some_reasons_are_told_the_worst_first_and_others_are_counted() -> None:
    assert verdict([LOST, BROKEN]) == Health("trouble", (BROKEN, LOST), 0)
    found = verdict([LOST] * (REASONS + 2))
    assert (len(found.reasons), found.more) == (REASONS, 2)
    assert (Health().more, found.as_record()["more"]) == (0, 2)
