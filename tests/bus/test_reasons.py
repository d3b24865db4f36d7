"""The table of reasons: one class for each word, and the same on the page."""

import re

from bus.reasons import DROPPED, REJECTED, is_intended, kind_of, troubles
from tests.helpers import ROOT


def test_a_policy_a_takeover_and_a_client_that_leaves_are_no_trouble() -> None:
    counts = {
        "pattern": 3,
        "conflated": 2,
        "shed": 1,
        "aged out": 1,
        "fenced": 4,
        "peer gone": 5,
        "closed": 6,
    }
    assert troubles(counts) == {}


def test_what_a_policy_drops_is_intended_and_what_has_no_room_is_not() -> None:
    assert [is_intended(word) for word in ("conflated", "queue full", "peer gone")] == [True, False, False]


def test_what_nobody_asked_for_is_trouble_and_so_are_unknown_words() -> None:
    counts = {"queue full": 3, "stale": 1, "No buffer space available": 2, "conflated": 9}
    assert troubles(counts) == {"queue full": 3, "stale": 1, "No buffer space available": 2}


def test_what_devices_say_all_day_is_no_trouble() -> None:
    """Each telegram of a meter has an empty message in it: the audit would be amber whatever happens."""
    assert troubles({"not available": 86_400, "hex frame": 9}) == {}


def test_a_word_has_one_class_wherever_it_is_counted() -> None:
    assert all(kind_of(reason.word) == reason.kind for reason in (*DROPPED, *REJECTED))


def test_every_reason_that_links_and_bridges_count_has_a_class() -> None:
    counted = re.compile(r"""\b_?(?:drop|settle|forget|purge|clear|hold|Sent)\([^()]*?"([a-z][a-z ]*)\"""")
    paths = [*(ROOT / "bridges").rglob("*.py"), *(ROOT / "bus" / "transports").glob("*.py")]
    found = {word for path in paths for word in counted.findall(path.read_text())}
    assert len(found) > 10
    assert found - {reason.word for reason in DROPPED} == set()


def test_every_reason_for_which_media_and_protocols_reject_is_on_a_page() -> None:
    counted = re.compile(r"""\b_?(?:reject|none)\([^()]*?"([a-z][a-z -]*)\"""")
    found = {word for path in (ROOT / "bridges").rglob("*.py") for word in counted.findall(path.read_text())}
    pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    assert len(found) > 30
    assert sorted(word for word in found if f"`{word}`" not in pages) == []


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs" / "policies.md").read_text()
    rows = [f"| `{reason.word}` | {reason.kind} | {reason.meaning} |" for reason in DROPPED]
    assert [row for row in rows if row not in page] == []
