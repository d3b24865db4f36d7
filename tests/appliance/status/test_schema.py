"""The schema of a status document: its version, and what must be there."""

import runpy
import sys

import pytest

from appliance.status.schema import schema, text
from appliance.status.shape import KEYS


def test_the_version_is_fixed_and_what_may_be_missing_is_not_required() -> None:
    made = schema()
    assert made["properties"]["version"] == {"const": 2}
    assert set(KEYS) - set(made["required"]) == {
        "alarms",
        "certificates",
        "drawing",
        "health",
        "more_values",
        "sums",
        "file",
        "plant",
    }


def test_lists_tables_and_records_have_their_types() -> None:
    properties = schema()["properties"]
    assert properties["hubs"]["items"]["type"] == "object"
    assert properties["names"]["items"] == {"type": "string"}
    assert properties["gateways"]["additionalProperties"] == {"type": "string"}
    assert properties["pid"]["type"] == "integer"


@pytest.mark.parametrize(("name", "prints"), [("__main__", True), ("appliance.status.schema", False)])
def test_it_is_printed_only_where_it_runs_as_a_program(
    name: str, prints: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "appliance.status.schema")
    runpy.run_module("appliance.status.schema", run_name=name)
    assert capsys.readouterr().out == (text() if prints else "")


def test_the_published_file_has_an_indent_of_one() -> None:
    assert text().startswith('{\n "$schema": ')
