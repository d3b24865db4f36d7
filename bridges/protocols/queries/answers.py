"""The search for values in the answers of a device. Pure."""

from collections.abc import Callable, Iterator

from bridges.protocols.commands import ValueCoding
from bridges.protocols.lines.matching import Finder, compiled

Find = Callable[[bytes], bytes | None]
"""A function that returns the data in an answer; None if it has none."""


def finder(expression: str | None) -> Find:
    """Return what finds the data in a line that an expression describes; without one, all of it is."""
    if expression is None:
        return lambda line: line
    found = Finder(expression, (), False)

    def find(line: bytes) -> bytes | None:
        match = found.find(line)
        return None if match is None else match[1]

    return find


def valued(find: Find, coding: ValueCoding) -> Find:
    """Return what finds the data of a value in an answer, or in a line of it."""

    def search(answer: bytes) -> bytes | None:
        for text in _parts(answer):
            if (data := find(text)) is not None and _is_value(coding, data):
                return data
        return None

    return search


def acknowledged(expression: str) -> Find:
    """Return what finds the line in an answer by which the device confirms a write."""
    find = finder(expression)

    def search(answer: bytes) -> bytes | None:
        return next((text for text in _parts(answer) if find(text) is not None), None)

    return search


def whole_fits(expression: str, end: bytes) -> Callable[[bytes], bool]:
    """Return what tells whether an expression describes a whole text, which has no end of a request in it:
    what follows one is another request."""
    made = compiled(expression, False)
    return lambda text: not (end and end in text) and made.fullmatch(text) is not None


def _parts(answer: bytes) -> Iterator[bytes]:
    """Yield an answer as a whole, then its lines, each without the blanks around it."""
    yield answer.strip()
    lines = [line.strip() for line in answer.splitlines()]
    if len(lines) > 1:
        yield from filter(None, lines)


def _is_value(coding: ValueCoding, data: bytes) -> bool:
    try:
        coding.decode(data)
    except ValueError:
        return False
    return True
