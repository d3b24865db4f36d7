"""The table of docs/fuzzing.md, made from the targets: `python -m tests.fuzz.page` writes it."""

from typing import Final

from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS
from tests.helpers import ROOT

PAGE: Final = ROOT / "docs" / "fuzzing.md"
_HEAD: Final = "|---|---|---|\n"


def row(target: Target) -> str:
    inputs = f"{target.inputs:,}" + (f": {target.why}" if target.why else "")
    return f"| {target.name} | {target.parses} | {inputs} |\n"


def table() -> str:
    return _HEAD + "".join(map(row, TARGETS.values()))


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text().partition(_HEAD)[0] + table())
