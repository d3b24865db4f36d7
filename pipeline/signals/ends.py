"""The ends of the names of signals, by which a command knows them. Pure."""

from collections.abc import Iterable

from bus.text import closest, nearest


def ends_with(name: str, end: str) -> bool:
    """Return whether a name ends with these parts, whatever their case."""
    name, end = name.casefold(), end.casefold()
    return name == end or name.endswith(f"/{end}")


def like(end: str, names: Iterable[str]) -> str:
    """Return `; did you mean "right"?` for an end that no name has, or names if none is similar."""
    count = end.count("/") + 1
    ends = {tail.casefold(): tail for tail in ("/".join(name.split("/")[-count:]) for name in names)}
    near = closest(end.casefold(), ends)
    return nearest(ends[near] if near else end, ends.values())
