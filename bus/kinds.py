"""Record classes by their key in files: ours from a table, those of other distributions from entry points."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


def load(name: str) -> Any:
    """Import the module of "module:Class" and return the class."""
    module, _, cls = name.partition(":")
    return getattr(import_module(module), cls)


class Kinds(Generic[T]):
    """A table of record classes by key. `ours`: key to "module:Class". `group`: entry points that add others.

    A module is imported when its key is looked up. Entry points are read only if a key is not one of ours,
    or if all keys are wanted, because reading them takes longer than many commands.
    """

    def __init__(self, group: str, ours: Mapping[str, str]) -> None:
        self.group, self._ours = group, ours

    def find(self, key: str) -> type[T] | None:
        """Return the class for `key`, or None. Raises ValueError if an entry point cannot be imported."""
        if key in self._ours:
            ours: type[T] = load(self._ours[key])
            return ours
        if (entry := self._others.get(key)) is None:
            return None
        try:
            others: type[T] = entry.load()
        except Exception as error:  # a foreign module may raise anything
            raise ValueError(f'"{key}" of {entry.value} cannot be imported: {error}') from error
        return others

    def ours(self) -> tuple[str, ...]:
        """Return the keys of this distribution, in the order of the table."""
        return tuple(self._ours)

    def all(self) -> tuple[str, ...]:
        """Return the keys of all installed classes, ours first."""
        return *self._ours, *self._others

    def known(self) -> Iterator[tuple[str, type[T]]]:
        """Yield the keys of this distribution with their classes."""
        yield from ((key, load(name)) for key, name in self._ours.items())

    @cached_property
    def _others(self) -> "dict[str, EntryPoint]":
        from importlib.metadata import entry_points

        found = entry_points(group=self.group)
        return {entry.name: entry for entry in found if entry.name not in self._ours}
