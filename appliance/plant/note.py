"""The note of a gateway: a small part of its status, which the other gateways of its plant ask for. Pure."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from appliance.status.shape import Maybe, fits

GATEWAY: Final = "/gateway.json"
"""The path of the note at the status page."""
NOTE_BYTES: Final = 1 << 18
"""The most bytes of a note."""
ROLES: Final = 64
MARKS: Final = 512
WORDS: Final = 400
"""The most letters of a verdict."""
_KEYS: Final = ("topology", "gateway", "product", "file", "time_ns", "started_ns", "page")
_ROLE: Final = ("bridge", "role", "ready", "epoch", "holder")
_MARK: Final = {"state": str, "text": str, "lines": [str], "ways": [str]}
SHAPE: Final[Mapping[str, Any]] = {
    "topology": str, "gateway": str, "product": str, "file": str, "time_ns": int, "started_ns": int,
    "page": str, "health": Maybe({"word": str, "line": str}),
    "roles": [{"bridge": str, "role": str, "ready": bool, "epoch": int, "holder": str, "lease": Maybe(str)}],
    "marks": Maybe({str: _MARK}),
}  # fmt: skip
Note = Mapping[str, Any]
"""The word of a gateway about itself, a document that fits `SHAPE`."""


def note_of(status: Mapping[str, Any], marks: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the note of a gateway from its status, with the marks of its own things in the picture.

    A status of another version may have less.
    """
    found: dict[str, Any] = {key: status.get(key, "") for key in _KEYS}
    if "health" in status:
        found["health"] = {"word": status["health"]["word"], "line": status["health"]["line"][:WORDS]}
    found["roles"] = [_role(one) for one in status["candidates"][:ROLES]]
    return found if marks is None else found | {"marks": dict(islice(marks.items(), MARKS))}


def _role(role: Mapping[str, Any]) -> dict[str, Any]:
    return {key: role[key] for key in _ROLE} | {"lease": role.get("lease", role["bridge"])}


def read_note(data: bytes) -> Note:
    """Return the note in an answer. Raises ValueError for something else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not fits(found, SHAPE):
        raise ValueError("what answers there is no gateway of this version")
    note: Note = found
    return note
