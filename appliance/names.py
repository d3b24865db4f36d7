"""Names that the user of a command gives: in a topology, a file, a capture's directory, or a list."""

from pathlib import Path

from capture.names import given

TOPOLOGIES = (".yaml", ".yml")
SOURCES = "names to show for tokens: a topology, a file with one a line, a directory of captures, or a list"


def names_of(word: str) -> list[int | str]:
    """Return the names that a word stands for. Raises `BusError`."""
    if Path(word).suffix not in TOPOLOGIES:
        return given(word)
    from topologies.loader import load  # late: the jobs need no YAML
    from topologies.names import known

    return [*known(load(word))]
