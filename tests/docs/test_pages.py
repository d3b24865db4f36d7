"""The pages are complete: the index links each of them, and no link is broken."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def links(page: Path) -> Iterator[str]:
    """Return the targets of the page's links, without those to other sites."""
    text = CODE.sub(lambda match: "x" * (not match[0].startswith("```")), page.read_text())
    yield from (target for target in LINK.findall(text) if "://" not in target)


def anchors(page: Path) -> set[str]:
    """Return a heading's name in links: lower case, hyphens for blanks, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_links_every_page() -> None:
    linked = {(DOCS / target.partition("#")[0]).resolve() for target in links(DOCS / "index.md")}
    assert {page.resolve() for page in PAGES} - linked == {(DOCS / "index.md").resolve()}


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("*.md")), *PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_no_link_leads_nowhere(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_the_glossary_fits_on_a_screen() -> None:
    assert len((DOCS / "words.md").read_text().splitlines()) <= 40


def test_every_decision_has_a_date_and_stands_in_an_area() -> None:
    before, *areas = re.split(r"^## .+$", (DOCS / "decisions.md").read_text(), flags=re.MULTILINE)
    assert "\n### " not in before
    for area in areas:
        bodies = re.findall(r"^### (.+)\n(.*)$", area, re.MULTILINE)
        assert bodies
        assert [title for title, body in bodies if not re.match(r"\*\d{4}-\d\d-\d\d\.\* ", body)] == []
