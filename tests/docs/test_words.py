"""The pages are short enough to be read: the words of all that are not generated are counted."""

import re

from tests.helpers import ROOT

MOST = 78_000
GENERATED = {"topology.md", "commands.md"}
SECTION = re.compile(r"<!-- (\w+): written by .*?<!-- end of \1 -->", re.DOTALL)
"""A part of a page that a benchmark or a command writes."""


def words(text: str) -> int:
    """Count the words of a page that its author wrote: what has a letter or a digit."""
    return sum(any(letter.isalnum() for letter in word) for word in SECTION.sub("", text).split())


def test_all_pages_that_are_not_generated_are_bounded() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*/README.md")]
    counts = {page.relative_to(ROOT): words(page.read_text()) for page in pages if page.name not in GENERATED}
    total = sum(counts.values())
    longest = sorted(counts.items(), key=lambda item: -item[1])[:10]
    print(f"{total:,} words on {len(counts)} pages, at most {MOST:,}")
    assert total <= MOST, longest


def test_the_page_to_read_first_is_short() -> None:
    assert words((ROOT / "README.md").read_text()) <= 1_900
