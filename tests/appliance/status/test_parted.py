"""Whatever shows the counts of a link tells normal filtering apart from what nobody asked for."""

import re
from collections.abc import Callable

import pytest

from appliance.status.ledger import line
from appliance.status.overlay import marks
from appliance.status.terminal import links
from appliance.status.trial import table
from bus.hub import Hub
from bus.ledger import Account, Stats
from bus.reasons import DROPPED, REJECTED, is_intended
from tests.appliance.status.overlay_support import EMPTY, end, hub
from tests.bridges.support import RecordingPipe

Counts = dict[str, dict[str, int]]


def in_ledger(counts: Counts) -> str:
    return line(Account(Stats(offered=7, dropped=counts["dropped"], rejected=counts["rejected"])))


def in_trial(counts: Counts) -> str:
    bus, pipe = Hub("plant"), RecordingPipe("p")
    bus.attach(pipe)
    pipe.stats.dropped, pipe.stats.rejected = counts["dropped"], counts["rejected"]
    head, _, row = (re.split("  +", text.strip()) for text in table([bus]))
    return ", ".join(
        f"{title}: {cell}" if title == "filtered" else f"{title} {cell}"
        for title, cell in zip(head, row, strict=True)
    )


def row_of(counts: Counts) -> dict[str, object]:
    return end("up") | {"received": 0, "sent": 0, "queued": 0, "balance": 0} | counts


def in_top(counts: Counts) -> str:
    return ", ".join(text.strip() for text in links(EMPTY | {"hubs": [hub("p", row_of(counts))]}, None, None))


def in_a_picture(counts: Counts) -> str:
    return marks(EMPTY | {"hubs": [hub("p", row_of(counts))]})["e"].text.replace(" · ", ", ")


@pytest.mark.parametrize("shown", [in_ledger, in_trial, in_top, in_a_picture])
@pytest.mark.parametrize("how", ["dropped", "rejected"])
def test_each_reason_is_told_where_it_belongs(shown: Callable[[Counts], str], how: str) -> None:
    known = [reason.word for reason in (DROPPED if how == "dropped" else REJECTED)]
    for word in (*known, "word of a driver"):
        text = shown({"dropped": {}, "rejected": {}, how: {word: 7}})
        before, _, filtered = text.partition("filtered: ")
        assert (f"{how} 7 {word}" in filtered, f"{how} 7 {word}" in before) == (
            is_intended(word),
            not is_intended(word),
        ), text
