"""The translator of text lines."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bridges.protocols.delimited import DelimitedTranslator
from bridges.protocols.lines.matching import Finder
from bridges.protocols.lines.places import Template
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.protocol import tokens_of
from bridges.protocols.translator import Sent, Wire, frame, published
from bus.names import Names
from bus.text import MARK


class _Rule(NamedTuple):
    """The template of the frames of one pattern."""

    tokens: tuple[int, ...]
    template: Template


class LinesTranslator(DelimitedTranslator):
    """A translator that cuts lines at the delimiter, finds their pattern, and writes frames by templates.

    Lines are rejected as `oversize`, `encoding` and `unmatched`; empty ones are none.
    """

    def __init__(self, record: Lines, wire: Wire) -> None:
        self._has_cr, self._has_lf = record.delimiter is None, record.ending == b"\r"
        super().__init__(wire, record.ending, record.longest_bytes + (self._has_cr or self._has_lf))
        self._record, self._forbidden = record, record.forbidden
        self._fixed = None if record.matches else tokens_of(record.receive)
        self._other = None if record.unmatched is None else tokens_of(record.unmatched)
        self._is_text = is_text = record.encoding != "none"
        self._finders = [Finder(expression, names, is_text) for expression, names in record.matches.items()]
        self.know(wire.names)

    def know(self, names: Sequence[str]) -> None:
        codec = self._record.codec
        word = _writer(names, codec)
        rules = [
            _Rule(tokens_of(start), Template(text, word, codec))
            for start, text in self._record.templates.items()
        ]
        self._rules = sorted(rules, key=lambda rule: -len(rule.tokens))

    def _frames(self, run: bytes) -> Iterable[bytes]:
        line = self._bare(run)
        if self._is_text:
            line = line.removeprefix(MARK)
        if not line:
            return
        if len(line) > self._record.longest_bytes:
            self.reject("oversize", len(line))
        elif not _is_encoded(line, self._record.encoding):
            self.reject("encoding", len(line))
        elif (found := self._found(line)) is None:
            self.reject("unmatched", len(line))
        else:
            self.found += 1
            yield frame(*found)

    def _bare(self, run: bytes) -> bytes:
        """Return a line without what other devices end lines with, too: CR and LF."""
        if self._has_lf:
            return run.removeprefix(b"\n")
        return run.removesuffix(b"\r") if self._has_cr else run

    def end(self, now_s: float) -> list[bytes]:
        if self._has_lf and len(self._cutter) == 1:
            self._cutter.drop(b"\n")
        return super().end(now_s)

    def _found(self, line: bytes) -> tuple[tuple[int, ...], bytes] | None:
        if self._fixed is not None:
            return self._fixed, line
        for finder in self._finders:
            if (found := finder.find(line)) is not None:
                return found
        return None if self._other is None else (self._other, line)

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        fits = ((one, published(message, one.tokens)) for one in self._rules)
        rule, found = next((pair for pair in fits if pair[1] is not None), (None, None))
        if rule is None or found is None:
            return Sent(why="not sent here")
        values = rule.template.values(found.tokens[len(rule.tokens) :], found.data)
        if values is None:
            return Sent(why="no token")
        if why := self._unfit(values):
            return Sent(why=why)
        line = rule.template.filled(values)
        if len(line.removesuffix(self._record.ending)) > self._record.longest_bytes + self._has_cr:
            return Sent(why="oversize")
        return Sent([line])

    def _unfit(self, values: Sequence[bytes]) -> str:
        """Return why values cannot stand in a line; "" if they can."""
        if any(end in value for value in values for end in self._forbidden):
            return "line end inside"
        return "" if all(_is_encoded(value, self._record.encoding) for value in values) else "no text"


def _is_encoded(text: bytes, encoding: str) -> bool:
    if encoding == "none" or text.isascii():
        return True
    if encoding == "ascii":
        return False
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _writer(names: Iterable[str], codec: str) -> Callable[[int], bytes]:
    """Return what writes a token: by its name if one is known that can be written, else as a number."""
    known = Names(names)
    shared = known.collisions()

    def word(token: int) -> bytes:
        name = None if token in shared else known.get(token)
        try:
            return (name or f"{token}").encode(codec)
        except UnicodeEncodeError:
            return b"%d" % token

    return word
