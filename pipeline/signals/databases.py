"""The databases of CAN messages that a command names, and where their messages are looked for."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bridges.protocols.dbc import layout
from bridges.protocols.dbc.checks import flaws_of
from bridges.protocols.dbc.database import Unreadable, read
from bridges.protocols.dbc.layout import Message
from bus.errors import TokenError, words_of
from bus.extras import lacking
from bus.text import amount, plain
from bus.wire.notation import pattern_of
from pipeline.errors import PipelineError
from pipeline.input.names import is_called
from pipeline.signals.ends import ends_with

ROOT: Final = "can"
"""The pattern in front of identifiers, where the names beside a capture tell no other."""

Tokens = tuple[int, ...]


class Database(NamedTuple):
    """Messages, and where they are: below the pattern `where`, or on the segment of that name; ""
    anywhere."""

    where: str
    messages: tuple[Message, ...]

    def has(self, end: str) -> bool:
        """Return whether the name of a signal ends so, if it is in place: there it has a pattern in front."""
        names = (f"{one.name}/{signal.name}" for one in self.messages for signal in one.signals)
        return any(ends_with(name, end) or ends_with(end, name) for name in names)

    def is_on(self, bus: str) -> bool:
        """Return whether it is for the frames on the wire of a segment."""
        return not self.where or is_called(bus, self.where)

    def is_below(self, root: Tokens, bus: str) -> bool:
        """Return whether it is for the messages below a root."""
        return self.is_on(bus) or tokens_of(self.where) == root


def tokens_of(word: str) -> Tokens | None:
    """Return the tokens of a pattern, None if the word is none."""
    try:
        return tuple(pattern_of(word))
    except TokenError:
        return None


def databases(words: Sequence[str]) -> list[Database]:
    """Read what `--dbc [WHERE=]FILE` names: those of one place first. Raises `PipelineError`.

    Of several messages with one identifier the first counts.
    """
    found = dict[str, dict[int, Message]]()
    for word in words:
        where, file = _parted(word)
        for message in _read(file).messages.values():
            found.setdefault(where, {}).setdefault(message.identifier, message)
    made = [Database(where, tuple(messages.values())) for where, messages in found.items()]
    return sorted(made, key=lambda one: not one.where)


def _parted(word: str) -> tuple[str, str]:
    where, equals, file = word.partition("=")
    return (where, file) if equals and not Path(word).exists() else ("", word)


def flaws(words: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong in the databases that can be read, and which messages stand behind those of another
    file. Raises `PipelineError`."""
    firsts = dict[tuple[str, int], Message]()
    for word in words:
        where, file = _parted(word)
        database = _read(file)
        yield from (plain(f"--dbc {file}: {text}") for text in flaws_of(database))
        pairs = [(firsts.setdefault((where, one.identifier), one), one) for one in database.messages.values()]
        if behind := [f"{first.name} before {one.name}" for first, one in pairs if first != one]:
            some = amount(len(behind), "message")
            yield plain(f"--dbc {file}: {some} with the identifier of another, that counts: {behind[0]}")


def _read(file: str) -> layout.Database:
    try:
        return read(file)
    except ImportError as error:
        raise PipelineError(lacking("--dbc", error.name or "cantools", "dbc")) from None
    except OSError as error:
        raise PipelineError(f"--dbc {file}: cannot be read: {error.strerror or words_of(error)}") from None
    except Unreadable as error:
        place = f":{error.line}" if error.line else ""
        raise PipelineError(f"--dbc {file}{place}: {error}") from None


def roots(names: Iterable[Tokens]) -> dict[Tokens, None]:
    """Return the patterns in front of identifiers: those that the names tell, and `ROOT`."""
    return dict.fromkeys((*names, tuple(pattern_of(ROOT))))
