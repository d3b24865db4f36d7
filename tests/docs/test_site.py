"""`make site` builds all pages without a warning. The site has a search, and needs no other host."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

FETCHED = re.compile(r"<(?:script|img|iframe)[^>]*\bsrc=\"([^\"]+)\"|<link[^>]*\bhref=\"([^\"]+)\"")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    directory = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(directory)]
    done = subprocess.run(words, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return directory


def test_it_has_every_page_in_its_navigation_and_in_its_search(site: Path) -> None:
    front = (site / "index.html").read_text()
    found = {doc["location"] for doc in json.loads((site / "search/search_index.json").read_text())["docs"]}
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert (site / name).exists()
        assert name in found
        assert f'href="{name}"' in front or name == "index.html"


def test_files_outside_of_the_pages_are_linked_and_there(site: Path) -> None:
    assert 'href="files/topologies/failover.yaml"' in (site / "tutorial.html").read_text()
    assert (site / "files/topologies/failover.yaml").read_text() == (
        ROOT / "topologies/failover.yaml"
    ).read_text()


def test_lists_tables_and_blocks_are_such(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = re.sub(r"<(pre|code|script)\b.*?</\1>", "", page.read_text(), flags=re.DOTALL)
        assert re.findall(r"^(?:<p>)?(?:[-*] |\||```).*", text, re.MULTILINE) == [], page.name


def test_a_browser_fetches_nothing_from_another_host(site: Path) -> None:
    addresses = [a or b for page in site.rglob("*.html") for a, b in FETCHED.findall(page.read_text())]
    assert len(addresses) > 100
    assert [address for address in addresses if "//" in address] == []
