"""The announcement of a gateway: as much of its note as a frame holds. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from appliance.plant.note import SHAPE, Note
from appliance.status.shape import fits
from bus.announcements import NOTE, ROOM_BYTES, Announcement, announce, json_of
from bus.keys import Keyring

T = TypeVar("T")
_LINE: Final = 160  # letters of a verdict
_PLAIN: Final = ("topology", "gateway", "product", "file", "time_ns", "started_ns", "page")
_ROLE: Final = ("bridge", "role", "ready", "epoch", "holder", "lease")


def announced(note: Note, states: Mapping[str, str], ring: Keyring | None = None) -> bytes:
    """Return the frame that announces a note, and the states of things of the gateway in the picture.

    Roles and states that do not fit are left out, the last ones first. `ring` signs it.
    """
    fields: dict[str, Any] = {key: note[key] for key in _PLAIN}
    if "health" in note:
        fields["health"] = [note["health"]["word"], note["health"]["line"][:_LINE]]
    room = ROOM_BYTES - len(json_of(fields)) - len(',"roles":[],"marks":{}')
    if room < 0:
        fields, room = fields | {"page": "", "health": [*fields["health"][:1], ""]}, 0
    roles = [[role[key] for key in _ROLE] for role in note["roles"]]
    fields["roles"] = list(_fitting(roles, room))
    room -= len(json_of({"": fields["roles"]}))
    by_state = defaultdict[str, list[str]](list)
    for name, state in _fitting(states.items(), room - 64):
        by_state[state].append(name)
    return announce(NOTE, json_of(fields | {"marks": by_state}), ring)


def _fitting(items: Iterable[T], room: int) -> Iterator[T]:
    """Yield the first items whose JSON is in all no longer than `room`."""
    for item in items:
        room -= len(json_of({"": item}))
        if room < 0:
            return
        yield item


def note_in(said: Announcement) -> Note | None:
    """Return the note in an announcement; None if there is none of a gateway."""
    fields = said.fields
    found: dict[str, Any] = {key: fields.get(key) for key in _PLAIN}
    health = fields.get("health")
    if isinstance(health, list) and len(health) == 2:
        found["health"] = {"word": health[0], "line": health[1]}
    found["roles"] = [_role(one) for one in _list(fields.get("roles"))]
    marks = fields.get("marks")
    found["marks"] = {
        name: {"state": state, "text": "", "lines": [], "ways": []}
        for state, names in (marks.items() if isinstance(marks, dict) else ())
        for name in _list(names) if isinstance(name, str)
    }  # fmt: skip
    return found if fits(found, SHAPE) else None


def _role(values: Any) -> dict[str, Any]:
    return dict(zip(_ROLE, _list(values), strict=False))


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
