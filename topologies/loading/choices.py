"""Values by gateway: a mapping from gateways to values that stands where one value is expected. Pure."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_args, get_origin

from yaml.nodes import MappingNode, Node, ScalarNode

from bus.schema import Record, Single, alternatives, present, settings, unwrap
from bus.text import nearest


def is_choice(node: MappingNode, annotation: Any, gateways: Collection[str]) -> bool:
    """Return whether a mapping gives a value by gateway, where a value of this type is expected.

    A key that is a gateway says so, with two exceptions. Where a mapping is expected, a key of that mapping
    says that it is one. Where any keys are allowed, all keys must be gateways, with a mapping for each.
    """
    keys = [str(key.value) for key, _ in node.value if isinstance(key, ScalarNode)]
    bare = _expected(annotation)
    if get_origin(bare) is Mapping:
        whole = all(isinstance(child, MappingNode) for _, child in node.value)
        return whole and 0 < len(keys) == len(node.value) and all(key in gateways for key in keys)
    own = _keys(bare) if isinstance(bare, type) and issubclass(bare, Record) else ()
    return any(key in gateways for key in keys) and not any(key in own for key in keys)


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


Wrong = tuple[Node, str]  # a key, and what is wrong with it


def wrong_keys(node: MappingNode, gateways: Collection[str], on: Collection[str]) -> Iterator[Wrong]:
    """Yield each key of a choice that is none of the gateways `on`, which run the record."""
    for key, _ in node.value:
        name = str(key.value)
        if name not in gateways:
            yield key, f'no gateway "{name[:64]}"{nearest(name, on or gateways)}'
        elif on and name not in on:
            instead = f"leave this value out, or add {name} to on"
            yield key, f"it does not run on {name}, only on {', '.join(on)}: {instead}"
