"""The level of a file at which a key belongs: below, beside what holds it, or anywhere else. Pure."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple, get_args, get_origin

from bus.elsewhere import known_elsewhere
from bus.kinds import Kinds
from bus.schema import (
    ByGateway,
    Called,
    KindOf,
    Owned,
    Record,
    Single,
    alternatives,
    members,
    settings,
    unwrap,
)
from topologies.loading.mappings import called_in

_HOMES_MOST: Final = 3  # of more, none is what is meant


class _Level(NamedTuple):
    """A record that a file can have, and the text around its mapping: what a key of it is written in.

    `kind` is the key that says which of several kinds it is; "" for a record of one kind.
    """

    cls: type[Record]
    before: str = ""
    behind: str = ""
    kind: str = ""

    def around(self, key: str) -> tuple[str, str]:
        """Return the text before and behind the value of a key."""
        kind = f"{self.kind}: ..., " if self.kind not in ("", key) else ""
        return (f"{self.before}{{{kind}{key}: ", f"}}{self.behind}") if self.before else (f"{key}: ", "")


def home_of(name: str, root: type[Record]) -> str:
    """Return `; ` and where a key belongs in a file whose whole is a `root`; of too many places, those at the
    levels nearest to it.

    "" for a key of no record, and for one of too many there.
    """
    by_level = _homes(root).get(name, [[]])
    every = [home for homes in by_level for home in homes]
    homes = every if len(every) <= _HOMES_MOST else by_level[0]
    return f"; it belongs elsewhere: {' or '.join(homes)}" if 0 < len(homes) <= _HOMES_MOST else ""


def _searched(root: type[Record]) -> Mapping[str, list[list[str]]]:
    """Return each key of a record below `root`, with what to write for it: by level, the nearest first."""
    found, seen, levels = dict[str, list[list[str]]](), set[type[Record]](), [_Level(root)]
    while levels:
        here, below = dict[str, dict[str, None]](), list[_Level]()
        for level in (one for one in levels if one.cls not in seen):
            for key, annotation in _values_of(level.cls):
                before, behind = level.around(key)
                here.setdefault(key, {})[f"{before}...{behind}"] = None
                below += _levels_in(annotation, before, behind)
        seen |= {level.cls for level in levels}
        for key, texts in here.items():
            found.setdefault(key, []).append([*texts])
        levels = below
    return found


_homes: Final[Callable[[type], Mapping[str, list[list[str]]]]] = lru_cache(maxsize=4)(_searched)


def _values_of(cls: type[Record]) -> Iterator[tuple[str, Any]]:
    """Yield each key of a record with the type of its value; of kinds, those of this distribution."""
    yield from ((key, one.annotation) for key, one in settings(cls).items())
    if choice := alternatives(cls):
        yield from choice[1].kinds.known()


def _levels_in(annotation: Any, before: str, behind: str) -> Iterator[_Level]:
    """Yield each record that a value can hold, with the text around it."""
    bare, markers = unwrap(annotation)
    origin = get_origin(bare)
    if called := next((one for one in markers if isinstance(one, Called)), None):
        yield from (_Level(kind, f"{before}{{{key}: ", f"}}{behind}") for key, kind in called.kinds.known())
    elif isinstance(bare, type) and issubclass(bare, Record):
        known = [pair for one in markers if isinstance(one, KindOf) for pair in one.kinds.known()]
        yield from (_Level(kind, before, behind, key) for key, kind in known or [("", bare)])
    elif origin in (ByGateway, Owned):
        yield from _levels_in(get_args(bare)[0], before, behind)
    elif origin is tuple:
        opened, closed = ("", "") if any(isinstance(one, Single) for one in markers) else ("[", "]")
        yield from _levels_in(get_args(bare)[0], before + opened, closed + behind)
    elif origin is Mapping:
        yield from _levels_in(get_args(bare)[1], f"{before}{{NAME: ", f"}}{behind}")
    elif len(parts := members(bare)) > 1:
        for part in parts:
            yield from _levels_in(part, before, behind)


def holder_of(name: str, cls: type[Record], beside: Collection[str]) -> str:
    """Return the key of a record whose own record has the key `name`: it was written a level too high.

    So was one that is called `name` there. `beside` are the keys that are written: of kinds, only those are
    looked at. "" if there is none, or if what `name` needs beside it is told of that name.
    """
    choice = alternatives(cls)
    kinds = {key: kind for key in beside if (kind := _found(choice[1].kinds, key))} if choice else {}
    if (holder := _caller_of(name, cls)) and (kinds or not known_elsewhere(name)):
        return holder
    below: dict[str, tuple[type[Record], ...]] = {key: (kind,) for key, kind in kinds.items()}
    below |= {key: tuple(_records_in(setting.annotation)) for key, setting in settings(cls).items()}
    return next((key for key, records in below.items() if any(name in settings(one) for one in records)), "")


def written_beside(name: str, outer: type[Record]) -> str:
    """Return what to write in an `outer` record for a key `name` that was written a level too deep, in a
    record of it; "" if it has no place there."""
    if name in settings(outer):
        return f"{name}: ..."
    caller = _caller_of(name, outer)
    return caller and f"{caller}: {{{name}: ...}}"


def _caller_of(name: str, cls: type[Record]) -> str:
    """Return the key of a record whose value can be a record that is called `name`; "" if there is none."""
    return next((key for key, setting in settings(cls).items() if _calls(setting.annotation, name)), "")


def _calls(annotation: Any, name: str) -> bool:
    """Return whether a value can be a record that is called `name`."""
    called = called_in(annotation)
    return called is not None and _found(called.kinds, name) is not None


def _found(kinds: Kinds[Any], name: str) -> type[Any] | None:
    """Return a kind; None if there is none, or one of another distribution that cannot be imported."""
    with suppress(ValueError):
        return kinds.find(name)
    return None


def _records_in(annotation: Any) -> Iterator[type[Record]]:
    """Yield the records that a value, or the items of a list of them, can be; not those of a mapping."""
    bare, _ = unwrap(annotation)
    if isinstance(bare, type) and issubclass(bare, Record):
        yield bare
    elif get_origin(bare) in (tuple, Owned, ByGateway):
        yield from _records_in(get_args(bare)[0])
    elif len(parts := members(bare)) > 1:
        for part in parts:
            yield from _records_in(part)
