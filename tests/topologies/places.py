"""Every place of the schema of topologies where a value of a type may stand, as text around it."""

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args, get_origin

from bus.schema import (
    ByGateway,
    Called,
    KindOf,
    Owned,
    Record,
    alternatives,
    members,
    present,
    settings,
    unwrap,
)
from topologies.model import Topology


class Place(NamedTuple):
    """The text before and behind a value in YAML, the types that it may have, and its markers.

    The text holds nothing but the way to the value, so a reader has more to say about it.
    """

    before: str
    behind: str
    options: frozenset[type]
    markers: tuple[Any, ...]


def places(annotation: Any, before: str = "", behind: str = "") -> Iterator[Place]:
    """Yield each place below a value of this type."""
    bare, markers = unwrap(present(unwrap(annotation)[0]))
    markers = (*unwrap(annotation)[1], *markers)
    origin = get_origin(bare)
    if called := next((marker for marker in markers if isinstance(marker, Called)), None):
        for key in called.kinds.ours():
            named = called.kinds.find(key)
            assert named is not None
            yield from within(named, f"{before}{{{key}: {{", f"}}}}{behind}", "")
    elif isinstance(bare, type) and issubclass(bare, Record):
        kind_of = next((marker for marker in markers if isinstance(marker, KindOf)), None)
        for key in kind_of.kinds.ours() if kind_of else ("",):
            kind = kind_of.kinds.find(key) if kind_of else bare
            assert kind is not None
            yield from within(kind, before + (f"{{{key}: , " if key else "{"), "}" + behind, key)
    elif origin in (ByGateway, Owned):
        yield from places(get_args(bare)[0], before, behind)
    elif origin is tuple:
        yield from places(get_args(bare)[0], f"{before}[", f"]{behind}")
    elif origin is not None and origin.__name__ == "Mapping":
        yield from places(get_args(bare)[1], f"{before}{{x: ", f"}}{behind}")
    else:
        some = [one for one in members(bare) if one is not type(None)]
        own = [one for one in some if unwrap(one)[1] or get_origin(unwrap(one)[0]) is not None]
        if options := frozenset(one for one in some if one not in own):
            yield Place(before, behind, options, markers)
        for one in own if len(some) > 1 else ():
            yield from places(one, before, behind)
        if len(some) == 1 and own:
            yield Place(before, behind, frozenset({unwrap(some[0])[0]}), markers)


def within(cls: type[Record], before: str, behind: str, kind: str) -> Iterator[Place]:
    on = "on: gw, " if cls.GATEWAYS else ""
    for key, one in settings(cls).items():
        start = before.replace(f"{kind}: , ", "") if kind == key else before
        yield from places(one.annotation, f"{start}{on}{key}: ", behind)
    if choice := alternatives(cls):
        for key in choice[1].kinds.ours():
            yield from places(choice[1].kinds.find(key), f"{before}{on}{key}: ", behind)


EVERY = sorted(places(Topology), key=lambda place: place.before)
