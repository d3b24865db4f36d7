"""The JSON Schema of a status document, made from its shape. Pure.

`python -m appliance.status.schema > appliance/status/schema.json` writes the published file.
"""

import json
from typing import Any

from appliance.status.shape import KEYS, VERSION, Maybe

_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}


def schema() -> dict[str, Any]:
    """Return the schema. It allows more keys than it names."""
    found = _of({name: key.shape for name, key in KEYS.items()})
    for name, key in KEYS.items():
        found["properties"][name]["description"] = key.doc
    found["properties"]["version"] = {"const": VERSION}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Status of a buscoupler process",
        **found,
    }


def _of(shape: Any) -> dict[str, Any]:
    """Return the schema of one shape."""
    if isinstance(shape, Maybe):
        return _of(shape.shape)
    if isinstance(shape, list):
        return {"type": "array", "items": _of(shape[0])}
    if not isinstance(shape, dict):
        return {"type": _TYPES[shape]}
    if str in shape:
        return {"type": "object", "additionalProperties": _of(shape[str])}
    required = [name for name, inner in shape.items() if not isinstance(inner, Maybe)]
    properties = {name: _of(inner) for name, inner in shape.items()}
    return {"type": "object", "required": required, "properties": properties}


def text() -> str:
    """Return the published file."""
    return json.dumps(schema(), indent=1) + "\n"


def table() -> str:
    """Return the table of keys in docs/status.md."""
    rows = [f"| `{name}` | {key.doc} |" for name, key in KEYS.items()]
    return "\n".join(["| key | what it has |", "|---|---|", *rows])


if __name__ == "__main__":
    print(text(), end="")
