"""The page docs/performance.md: each benchmark writes one section of it, and people write all the rest."""

from pathlib import Path
from typing import Final

from benchmarks.command import DOCS, written

PAGE: Final = DOCS / "performance.md"


def write(name: str, module: str, text: str, path: Path = PAGE) -> None:
    """Replace the section `name` of the page at `path`, which `python -m module` measures.

    A page without this section gets it at its end, and a page that is not there is made.
    """
    begin, end = f"<!-- {name}: written by python -m {module}; do not edit -->\n", f"<!-- end of {name} -->\n"
    page = path.read_text() if path.exists() else ""
    before, found, rest = page.partition(begin)
    after = rest.partition(end)[2] if found else ""
    written(path).write_text(f"{before}{begin}\n{text.strip()}\n\n{end}{after}")
