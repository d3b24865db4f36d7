"""The names that a topology knows: those in its patterns, those it lists, and those in the file it names."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from bus.errors import TopologyError, why_of
from bus.machine.files import read_text
from bus.names import names_from, texts
from bus.text import lines_in
from topologies.model import NamesSpec, Topology
from topologies.wiring.filters import all_names

FILE_BYTES = 1 << 20


def known(topology: Topology, in_list: Iterable[str] | None = None) -> list[str]:
    """Return all names that a topology knows. `in_list` are those of `listed`, if they are known already.

    Raises `TopologyError` if the file of names cannot be read.
    """
    return texts([*used(topology), *(listed(topology.names) if in_list is None else in_list)])


def used(topology: Topology) -> list[str]:
    """Return the names in the patterns of a topology, each once."""
    return texts([*(name for pattern in all_names(topology) for name in pattern), *_spoken(topology)])


def _spoken(topology: Topology) -> Iterator[str]:
    """Yield the names that protocols make of their files."""
    for spec in topology.bridges.values():
        for side in (side for gateway in spec.on for side in spec.at(gateway)):
            if side.speaks is not None:
                yield from side.speaks.names()


def listed(names: NamesSpec) -> list[str]:
    """Return the names in the list and in the file. Raises `TopologyError` if the file cannot be read."""
    found = [name for pattern in names.list for name in pattern]
    path = file_of(names)
    return texts([*found, *(_read(path) if path else ())])


class ListedNames:
    """The names in the list and in the file, which is read for the first who asks."""

    def __init__(self, spec: NamesSpec) -> None:
        self._spec = spec

    @cached_property
    def names(self) -> list[str]:
        """The names, as `listed` returns them. Raises `TopologyError` if the file cannot be read."""
        return listed(self._spec)


def file_of(names: NamesSpec) -> Path | None:
    """Return the file of names, which stands beside the topology; None if there is none."""
    return Path(names.where.file).parent / names.file if names.file else None


def _read(path: Path) -> list[int | str]:
    try:
        return names_from(lines_in(read_text(path, FILE_BYTES)))
    except OSError as error:
        raise TopologyError(f"{path}: cannot read the names: {why_of(error)}") from None
    except ValueError as error:
        raise TopologyError(f"{path}: {error}") from None
