"""The meaning of a mapping in a file: a value for each gateway, or a record of one of several kinds. Pure.

A mapping from gateways to values can stand where one value is expected. A record of several kinds is of the
kind whose key it has.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

from yaml.nodes import MappingNode, Node, ScalarNode

from bus.elsewhere import known_elsewhere
from bus.schema import (
    Called,
    KindOf,
    Means,
    Record,
    Single,
    alternatives,
    members,
    present,
    settings,
    unwrap,
)
from bus.text import closest, nearest

_LIKENESS = 0.6
Among = tuple[list[str], type[Record] | None]
Wrong = tuple[Node, str]
"""A key, and what is wrong with it."""


def is_choice(node: MappingNode, annotation: Any, gateways: Collection[str]) -> bool:
    """Return whether a mapping gives a value by gateway, where a value of this type is expected.

    A key that is a gateway says so, with two exceptions. Where a mapping is expected, a key of that mapping
    says that it is one. Where any keys are allowed, all keys must be gateways, with a mapping for each. Where
    such a mapping or another value is expected, all keys must be gateways.
    """
    keys = [str(key.value) for key, _ in node.value if isinstance(key, ScalarNode)]
    bare = _expected(annotation)
    if get_origin(bare) is Mapping:
        whole = all(isinstance(child, MappingNode) for _, child in node.value)
        return whole and 0 < len(keys) == len(node.value) and all(key in gateways for key in keys)
    if any(map(is_mapping, members(bare))):
        return 0 < len(keys) == len(node.value) and all(key in gateways for key in keys)
    if not any(key in gateways for key in keys):
        return False  # without the keys of the record, for which all installed packages are searched
    own = _keys(bare) if isinstance(bare, type) and issubclass(bare, Record) else ()
    if (called := called_in(annotation)) is not None:
        own = called.kinds.all()
    return not any(key in own for key in keys)


def is_mapping(annotation: Any) -> bool:
    """Return whether an annotation is a mapping with any keys."""
    return get_origin(unwrap(annotation)[0]) is Mapping


def called_of(markers: Sequence[Any]) -> Called | None:
    """Return the marker of a record that is called by its name, or None."""
    return next((marker for marker in markers if isinstance(marker, Called)), None)


def called_in(annotation: Any) -> Called | None:
    """Return the marker of a value that can be a record called by its name, or None."""
    return called_of(unwrap(present(unwrap(annotation)[0]))[1])


def called_among(called: Called, node: Node) -> tuple[str, Node]:
    """Return the name of a record that is called by it, and the node of its settings: the same for a name
    alone. Raises ValueError, with the reason, for anything else."""
    if isinstance(node, ScalarNode) and isinstance(node.value, str) and node.value:
        return node.value, node
    if isinstance(node, MappingNode) and len(node.value) == 1 and isinstance(node.value[0][0], ScalarNode):
        return str(node.value[0][0].value), node.value[0][1]
    names = ", ".join(called.kinds.all())
    raise ValueError(f"{called.what} is one name, or one name with its settings below it: {names}")


def _expected(annotation: Any) -> Any:
    """Return the type that a mapping would be read as: that of the only item, for a list without brackets."""
    bare, markers = unwrap(present(unwrap(annotation)[0]))
    outer = unwrap(annotation)[1]
    if get_origin(bare) is tuple and any(isinstance(marker, Single) for marker in (*markers, *outer)):
        return _expected(get_args(bare)[0])
    return bare


def _keys(cls: type[Record]) -> Collection[str]:
    choice = alternatives(cls)
    return (*settings(cls), *(choice[1].kinds.all() if choice else ()))


def wrong_keys(node: MappingNode, gateways: Collection[str], on: Collection[str]) -> Iterator[Wrong]:
    """Yield each key of a choice that is none of the gateways `on`, which run the record."""
    for key, _ in node.value:
        name = str(key.value)
        if name not in gateways:
            yield key, f'no gateway "{name[:64]}"{nearest(name, on or gateways)}'
        elif on and name not in on:
            instead = f"leave this value out, or add {name} to on"
            yield key, f"it does not run on {name}, only on {', '.join(on)}: {instead}"


def kind_among(kind_of: KindOf, base: type[Record], node: MappingNode) -> Among:
    """Return which keys of a mapping are kinds, and the class of the record if it is exactly one.

    The table of other distributions is read only if that is needed: if none of ours is there, or a key is
    unknown. Raises ValueError for a kind that cannot be imported.
    """
    find, names = kind_of.kinds.find, [key.value for key in _names_of(node)]
    given = [name for name in names if name in kind_of.kinds.ours()]
    kind = find(given[0]) if len(given) == 1 else None
    unknown = [name for name in names if name not in settings(kind or base) and name not in given]
    given += [name for name in unknown if find(name) is not None]
    return given, (kind or find(given[0])) if len(given) == 1 else None


def slip_in(kind_of: KindOf, base: type[Record], node: MappingNode) -> tuple[ScalarNode, str] | None:
    """Return the key of a mapping without a kind that is most likely meant as one, and what is wrong."""
    kinds, known = kind_of.kinds.all(), settings(base)
    for key in _names_of(node):
        if key.value in known:
            continue
        if elsewhere := known_elsewhere(key.value):
            return key, f'unknown key "{key.value[:64]}"{elsewhere}'
        if closest(key.value, kinds, _LIKENESS):
            return key, f'unknown key "{key.value[:64]}"{nearest(key.value, (*known, *kinds))}'
    return None


def _names_of(node: MappingNode) -> list[ScalarNode]:
    return [key for key, _ in node.value if isinstance(key, ScalarNode)]


def meant_before(key: str, markers: Iterable[Any], meant: dict[Hashable, str]) -> str:
    """Return the key of `meant` that means the same as another one, "" if none does. Add that one."""
    means = next((marker for marker in markers if isinstance(marker, Means)), None)
    try:
        meaning = key if means is None else means.function(key)
    except ValueError:
        return ""
    before = meant.setdefault(meaning, key)
    return "" if before == key else before
