"""A status that is made while the loop of its process turns: of a large gateway it takes long."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from appliance.status.shape import Record
from appliance.status.snapshot import PIPES, snapshot, steps
from appliance.status.view import View

_TRIES: Final = 3
_DEPTH: Final = 3  # such as the row of a link


async def snapshot_in_turns(view: View, pipes: int = PIPES) -> Record:
    """Return the status as `snapshot` does. If a reload changes the parts meanwhile, it is made anew."""
    for _ in range(_TRIES):
        before, made = _made_of(view), steps(view, pipes)
        found: Record | None = None
        while found is None:
            await asyncio.sleep(0)
            try:
                next(made)
            except StopIteration as end:
                found = end.value
        await asyncio.sleep(0)
        if _made_of(view) == before:
            return found
    return snapshot(view, pipes)


def _made_of(view: View) -> list[object]:
    """Return what differs once a reload has changed the parts."""
    parts = list(view.parts())
    return [*parts, *((row.link, row.failure) for part in parts for row in part.rows)]


def as_json(document: Mapping[str, Any]) -> bytes:
    """Return a document as one line of JSON, as `json.dumps` writes it. Its keys are texts.

    It is encoded in pieces, for a thread: while the encoder works, no other thread does, and so no loop.
    """
    return (_piece(document, _DEPTH) + "\n").encode()


def _piece(value: Any, depth: int) -> str:
    if depth and isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(key)}: {_piece(one, depth - 1)}" for key, one in value.items())
        return f"{{{inner}}}"
    if depth and isinstance(value, list):
        return f"[{', '.join(_piece(one, depth - 1) for one in value)}]"
    return json.dumps(value)
