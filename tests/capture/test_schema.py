"""The page has every column of a capture, with its type."""

import re

from capture import schema
from tests.helpers import ROOT


def of_page() -> dict[str, str]:
    """The columns of the page's table, and their types; some are named together."""
    text = (ROOT / "docs" / "capture.md").read_text().split("## Columns")[1].split("\n## ")[0]
    found: dict[str, str] = {}
    for names, types in re.findall(r"^\| (`.*?) \| (.*?) \|", text, re.MULTILINE):
        words = types.replace("&lt;", "<").replace("&gt;", ">").split(", ")
        found |= dict(zip(re.findall(r"`(\w+)`", names), words, strict=True))
    return found


def test_every_column_and_its_type_are_on_the_page() -> None:
    columns = {column.name: column.sql for column in schema.COLUMNS}
    partitions = {schema.DATE: "DATE", schema.GATEWAY: "STRING"}
    assert of_page() == {**columns, schema.CONTENTS: "STRUCT", **partitions}


def test_the_page_has_the_version_and_every_code() -> None:
    text = (ROOT / "docs" / "capture.md").read_text()
    assert f"The schema has version {schema.VERSION};" in text
    (verdicts,) = re.findall(r"^\| `verdict` .*", text, re.MULTILINE)
    assert {int(n) for n in re.findall(r"\b\d+\b", verdicts)} == {int(one) for one in schema.Verdict}
    (kinds,) = re.findall(r"^\| `kind` .*", text, re.MULTILINE)
    of_files = set(schema.Kind) - {schema.Kind.NAMES, schema.Kind.TOPOLOGY}
    assert {int(n) for n in re.findall(r"\b\d+\b", kinds)} == {int(one) for one in of_files}
