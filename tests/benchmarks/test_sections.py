"""The page of performance: a benchmark replaces its own section, and nothing that people wrote."""

import re
from importlib.util import find_spec
from pathlib import Path

from benchmarks.sections import PAGE, write


def test_a_section_is_replaced_and_what_people_wrote_around_it_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text())
    write("catalog", "benchmarks.catalog", "figures\n", page)
    before, _, rest = PAGE.read_text().partition("<!-- catalog: ")
    after = rest.partition("<!-- end of catalog -->")[2]
    written = "written by python -m benchmarks.catalog; do not edit -->\n\nfigures\n\n<!-- end of catalog -->"
    assert page.read_text() == f"{before}<!-- catalog: {written}{after}"


def test_a_page_without_the_section_gets_it_at_its_end(tmp_path: Path) -> None:
    page = tmp_path / "new" / "page.md"
    write("one", "benchmarks.one", "1", page)
    write("two", "benchmarks.two", "2", page)
    assert re.findall(r"<!-- end of (\w+) -->", page.read_text()) == ["one", "two"]


def test_each_section_of_the_page_ends_and_names_a_program() -> None:
    found = re.findall(r"<!-- (\w+): written by python -m ([\w.]+); do not edit -->", PAGE.read_text())
    assert len(found) == 10
    assert re.findall(r"<!-- end of (\w+) -->", PAGE.read_text()) == [name for name, _ in found]
    assert all(find_spec(module) for _, module in found)
