"""The schema of a status document: its version, and what must be there."""

from appliance.status.schema import schema
from appliance.status.shape import KEYS


def test_the_version_is_fixed_and_what_may_be_missing_is_not_required() -> None:
    made = schema()
    assert made["properties"]["version"] == {"const": 2}
    assert set(KEYS) - set(made["required"]) == {"drawing"}


def test_lists_tables_and_records_have_their_types() -> None:
    properties = schema()["properties"]
    assert properties["hubs"]["items"]["type"] == "object"
    assert properties["names"]["items"] == {"type": "string"}
    assert properties["gateways"]["additionalProperties"] == {"type": "string"}
    assert properties["pid"]["type"] == "integer"
