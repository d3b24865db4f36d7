"""The pages are short enough to be read: the words of all that are not generated are counted."""

import re

from tests.helpers import ROOT

MOST = 60_000
GENERATED = {"topology.md", "commands.md"}
SECTION = re.compile(r"<!-- (\w+): written by .*?<!-- end of \1 -->", re.DOTALL)
"""A part of a page that a benchmark writes, or that is made of the code."""
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def words(text: str) -> int:
    """Count what people wrote on a page, code included: each word that has a letter or a digit."""
    shown = COMMENT.sub("", SECTION.sub("", text))
    return sum(any(map(str.isalnum, word)) for word in shown.split())


def test_all_pages_that_are_not_generated_are_bounded() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*/README.md")]
    counts = {page.relative_to(ROOT): words(page.read_text()) for page in pages if page.name not in GENERATED}
    total = sum(counts.values())
    longest = sorted(counts.items(), key=lambda item: -item[1])[:10]
    print(f"{total:,} words on {len(counts)} pages, at most {MOST:,}")
    assert total <= MOST, longest


def test_the_page_to_read_first_is_short() -> None:
    page = (ROOT / "README.md").read_text()
    assert words(page) <= 1_800
    first_screen = page.partition("\n## ")[0]  # of 1280 x 900, as GitHub shows it
    assert all(word in first_screen for word in ("**Do not use it**", "make demo", "buscoupler explain"))
    assert len(first_screen.splitlines()) <= 45


def test_what_is_generated_and_what_is_hidden_are_not_counted() -> None:
    section = "<!-- one: written by python -m one -->\nmany words\n<!-- end of one -->\n"
    assert words(f"two words\n{section}<!-- not run: hidden -->\n9f a0 12.5 | `code`\n") == 6
