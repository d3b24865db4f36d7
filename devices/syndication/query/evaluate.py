"""Turns the tree of a query into a function that tests metadata. Pure.

The function never raises, for any metadata from MessagePack. It recurses as deep as the tree, so bound the
depth before. Patterns run in RE2, whose time is linear in the length of the text.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from devices.syndication.query.errors import QueryError
from devices.syndication.query.tree import Among, And, Has, Like, Node, Not, Or, Scalar, Value, kinded

Metadata: TypeAlias = Mapping[str, Value]
Test: TypeAlias = Callable[[Metadata], bool]
PATTERN_MEMORY: Final = 1 << 16
"""Bytes that one pattern may take: its program, and the states of its automaton that RE2 keeps."""
_SCALARS: Final = frozenset((str, int, float, bool))


class Pattern(Protocol):
    """A compiled pattern of RE2."""

    @property
    def programsize(self) -> int:
        """The number of its instructions."""
        ...

    def search(self, text: bytes) -> object | None: ...


def test_of(node: Node, patterns: Mapping[str, Pattern]) -> Test:
    """Return the function that tests metadata by a tree. `patterns` has the compiled ones by their text."""
    match node:
        case Has(key):
            return lambda metadata: key in metadata
        case Among(key, (str(text),)):
            return _equals(key, text)
        case Among(key, values):
            return _among(key, values)
        case Like(key, pattern):
            return _like(key, patterns[pattern])
        case Not(part):
            return _not(test_of(part, patterns))
        case And(parts):
            return _and([test_of(part, patterns) for part in parts])
        case Or(parts):
            return _or([test_of(part, patterns) for part in parts])


def compiled(node: Like) -> Pattern:
    """Compile a pattern. Raises `QueryError` with RE2's reason if it refuses the pattern."""
    import re2

    options = re2.Options()
    options.max_mem = PATTERN_MEMORY
    options.never_capture = True
    options.log_errors = False
    try:
        pattern: Pattern = re2.compile(node.pattern, options)
    except re2.error as error:
        raise QueryError(node.position, f"the pattern is refused: {_words(error)}") from None
    return pattern


def _words(error: Exception) -> str:
    (reason,) = error.args
    text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _is_list(value: Value) -> bool:
    return type(value) is list or type(value) is tuple  # an extension of MessagePack is a named tuple


def _equals(key: str, text: str) -> Test:
    def test(metadata: Metadata) -> bool:
        value = metadata.get(key)
        return value == text or (_is_list(value) and text in value)  # type: ignore[operator]

    return test


def _among(key: str, values: tuple[Scalar, ...]) -> Test:
    wanted = frozenset(map(kinded, values))

    def is_wanted(value: Value) -> bool:
        return type(value) in _SCALARS and kinded(value) in wanted

    return _of_elements(key, is_wanted)


def _like(key: str, pattern: Pattern) -> Test:
    search = pattern.search

    def is_like(value: Value) -> bool:
        return type(value) is str and search(value.encode(errors="surrogatepass")) is not None

    return _of_elements(key, is_like)


def _of_elements(key: str, holds: Callable[[Value], bool]) -> Test:
    def test(metadata: Metadata) -> bool:
        value = metadata.get(key)
        return any(map(holds, value)) if _is_list(value) else holds(value)  # type: ignore[call-overload]

    return test


def _not(part: Test) -> Test:
    return lambda metadata: not part(metadata)


def _and(parts: list[Test]) -> Test:
    def test(metadata: Metadata) -> bool:
        for part in parts:  # noqa: SIM110 - a generator takes twice the time
            if not part(metadata):
                return False
        return True

    return test


def _or(parts: list[Test]) -> Test:
    def test(metadata: Metadata) -> bool:
        for part in parts:  # noqa: SIM110
            if part(metadata):
                return True
        return False

    return test
