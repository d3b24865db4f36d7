"""Values of MessagePack as text on the command line, and as JSON."""

import json
from math import isfinite
from typing import Any

from msgpack import ExtType, Timestamp


def words_of_value(value: Any) -> str:
    """Return a value as one line without control characters: text as it is, everything else as JSON."""
    if isinstance(value, str) and value and value.isprintable():
        return value
    text = json.dumps(jsonable(value), ensure_ascii=False)
    return text if text.isprintable() else json.dumps(jsonable(value))


def jsonable(value: Any) -> Any:
    """Return a value in types of JSON. A value that JSON lacks becomes an object that names its type.

    Such objects are `{"bytes": HEX}`, `{"ext": CODE, "bytes": HEX}`, `{"time_ns": N}` since 1970, `{"float":
    "nan"}`, or for a map with a key that is no text `{"map": [[KEY, VALUE], ...]}`.
    """
    match value:
        case Timestamp():
            return {"time_ns": value.to_unix_nano()}
        case ExtType():
            return {"ext": value.code, "bytes": value.data.hex()}
        case bytes():
            return {"bytes": value.hex()}
        case float() if not isfinite(value):
            return {"float": str(value)}
        case dict() if all(isinstance(key, str) for key in value):
            return {key: jsonable(part) for key, part in value.items()}
        case dict():
            return {"map": [[jsonable(key), jsonable(part)] for key, part in value.items()]}
        case list() | tuple():
            return list(map(jsonable, value))
    return value
