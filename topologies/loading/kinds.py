"""Records of several kinds: which kind a mapping is of, by the key that it has. Pure."""

from yaml.nodes import MappingNode, ScalarNode

from bus.schema import KindOf, Record, settings
from bus.text import closest, nearest

_LIKENESS = 0.6
Among = tuple[list[str], type[Record] | None]


def kind_among(kind_of: KindOf, base: type[Record], node: MappingNode) -> Among:
    """Return which keys of a mapping are kinds, and the class of the record if it is exactly one.

    The table of other distributions is read only if that is needed: if none of ours is there, or a key is
    unknown. Raises ValueError for a kind that cannot be imported.
    """
    find, names = kind_of.kinds.find, [key.value for key in _keys(node)]
    given = [name for name in names if name in kind_of.kinds.ours()]
    kind = find(given[0]) if len(given) == 1 else None
    unknown = [name for name in names if name not in settings(kind or base) and name not in given]
    given += [name for name in unknown if find(name) is not None]
    return given, (kind or find(given[0])) if len(given) == 1 else None


def slip_in(kind_of: KindOf, base: type[Record], node: MappingNode) -> tuple[ScalarNode, str] | None:
    """Return the key of a mapping without a kind that is most likely meant as one, and what is wrong."""
    kinds, known = kind_of.kinds.all(), settings(base)
    for key in _keys(node):
        if key.value not in known and closest(key.value, kinds, _LIKENESS):
            return key, f'unknown key "{key.value[:64]}"{nearest(key.value, (*known, *kinds))}'
    return None


def _keys(node: MappingNode) -> list[ScalarNode]:
    return [key for key, _ in node.value if isinstance(key, ScalarNode)]
