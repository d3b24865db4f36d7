"""What is kept to be published: warnings and worse, once for each cause, within a bound."""

import logging
from collections.abc import Iterator

import pytest

from appliance.log import unpublished
from appliance.log.unpublished import UnpublishedLines
from bus.logs import Line, read_line

log = logging.getLogger("buscoupler.bus")
events = logging.getLogger("buscoupler.events")


@pytest.fixture
def kept() -> Iterator[UnpublishedLines]:
    made = UnpublishedLines("gw")
    made.listen(True)
    made.listen(True)
    yield made
    made.listen(False)


def told(kept: UnpublishedLines) -> list[Line]:
    lines = [read_line(frame) for frame in kept.drain()]
    assert all(lines)
    return [line for line in lines if line is not None]


def test_warnings_and_worse_are_kept_with_level_source_and_logger(kept: UnpublishedLines) -> None:
    log.info("normal life")
    log.warning("a device is %s", "gone")
    log.error("a loop")
    log.critical("%d arguments", 1, 2)
    lines = told(kept)
    assert [(line.level, line.source, line.logger) for line in lines] == [
        ("warning", "gw", "buscoupler.bus"),
        ("error", "gw", "buscoupler.bus"),
        ("critical", "gw", "buscoupler.bus"),
    ]
    assert [line.text for line in lines][:2] == ["a device is gone", "a loop"]
    assert "%d arguments (1, 2)" in lines[2].text
    assert told(kept) == []


def test_lines_of_one_cause_are_held_back() -> None:
    now = [100.0]
    kept = UnpublishedLines("gw", lambda: now[0])
    kept.listen(True)
    for number in range(5):
        log.warning("peer %d left", number, extra={"cause": "peers"})
    assert [line.text for line in told(kept)] == ["peer 0 left"]
    now[0] += 11
    kept.listen(False)
    assert [line.text for line in told(kept)] == ["peer 4 left (and 4 more in 11 s)"]


def test_lines_of_events_are_left_out_where_events_are_published(kept: UnpublishedLines) -> None:
    events.warning("drop: here")
    kept.listen(True, without_events=True)
    events.warning("drop: there")
    assert [line.text for line in told(kept)] == ["drop: here"]


def test_a_flood_is_bounded_and_its_rest_counted(kept: UnpublishedLines) -> None:
    for number in range(1000):
        log.warning("line %d", number)
    lines, some = list[Line](), told(kept)
    while some:
        lines += some
        some = told(kept)
    texts = [line.text for line in lines]
    assert [text for text in texts if text.startswith("line ")] == [
        f"line {number}" for number in range(unpublished.WAITING)
    ]
    assert [text for text in texts if "not published" in text] == [
        f"{1000 - unpublished.WAITING} lines were not published: there were too many"
    ]


def test_nothing_is_kept_after_the_end(kept: UnpublishedLines) -> None:
    kept.listen(False)
    log.warning("later")
    assert told(kept) == []
