"""The announcement of a gateway: as much of its note as a frame holds. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeVar

from appliance.plant.note import MARKS, SHAPE, WORDS, Note
from appliance.status.shape import fits
from bus.announcements import NOTE, ROOM_BYTES, Announcement, announce, json_of
from bus.keys import Keyring
from topologies.picture.marks import Mark

T = TypeVar("T")
_SHORT: Final = 60  # letters of a verdict that has no room for all
_TEXT: Final = 120  # letters of a mark
_PLAIN: Final = ("topology", "gateway", "product", "file", "time_ns", "started_ns", "page")
_ROLE: Final = ("bridge", "role", "ready", "epoch", "holder", "lease")
_WORST_FIRST: Final = ("bad", "wait", "ok", "ready", "idle")
_ILL: Final = ("bad", "wait")
_STATES: Final = len(json_of({"marks": {state: [] for state in _WORST_FIRST}}))


def announced(note: Note, marks: Mapping[str, Mark], ring: Keyring | None = None) -> bytes:
    """Return the frame that announces a note, and the marks of things of the gateway in the picture.

    What does not fit is left out: first texts and rates of things that are well, then their states, then
    things that are not; then the last roles. `ring` signs it.
    """
    fields = _head(note)
    room = ROOM_BYTES - len(json_of(fields)) - len(',"roles":[]') - _STATES
    roles = [[role[key] for key in _ROLE] for role in note["roles"]]
    fields["roles"] = list(_fitting(roles, room))
    fields["marks"] = _marks(marks, room - _size(fields["roles"]))
    return announce(NOTE, json_of(fields), ring)


def _head(note: Note) -> dict[str, Any]:
    """Return the fields that each announcement has, with as many words of the verdict as there is room."""
    fields: dict[str, Any] = {key: note[key] for key in _PLAIN}
    health = note.get("health")
    for letters in (WORDS, _SHORT):
        if health is not None:
            fields["health"] = [health["word"], health["line"][:letters]]
        if len(json_of(fields)) <= ROOM_BYTES * 3 // 4:
            return fields
    return fields | {"page": ""}


def _marks(marks: Mapping[str, Mark], room: int) -> dict[str, list[Any]]:
    """Return things by their state, in `room` bytes: those that are not well, then names, then the rest."""
    order = sorted(marks, key=lambda name: _WORST_FIRST.index(marks[name].state))[:MARKS]
    ill = [name for name in order if marks[name].state in _ILL]
    said = dict[str, Any]()
    tries = (
        [(name, _whole(name, marks[name])) for name in ill],
        [(name, name) for name in order if name not in ill],
    )
    for name, item in chain(*tries, ((name, _whole(name, marks[name])) for name in order)):
        more = _size(item) - (_size(said[name]) if name in said else 0)
        if more <= room:
            said[name], room = item, room - more
    found = defaultdict[str, list[Any]](list)
    for name in order:
        if name in said:
            found[marks[name].state].append(said[name])
    return found


def _whole(name: str, mark: Mark) -> list[str] | str:
    """Return a thing with the text of its mark, and the rates of both ways; its name alone if it has none."""
    return [name, mark.text[:_TEXT], *mark.ways] if mark.text or mark.ways else name


def _size(item: object) -> int:
    return len(json_of({"": item})) - len('{"":}') + len(",")


def _fitting(items: Iterable[T], room: int) -> Iterator[T]:
    """Yield the first items whose JSON is in all no longer than `room`."""
    for item in items:
        room -= _size(item)
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
        name: {"state": state, "text": text, "lines": [], "ways": ways}
        for state, things in (marks.items() if isinstance(marks, dict) else ())
        for name, text, ways in map(_thing, _list(things)) if name is not None
    }  # fmt: skip
    return found if fits(found, SHAPE) else None


def _thing(said: Any) -> tuple[str | None, Any, Sequence[Any]]:
    """Return the name, text and rates of a thing, which may be a name alone."""
    name, *more = _list(said) or [said]
    text, *ways = more or [""]
    return name if isinstance(name, str) else None, text, ways


def _role(values: Any) -> dict[str, Any]:
    return dict(zip(_ROLE, _list(values), strict=False))


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
