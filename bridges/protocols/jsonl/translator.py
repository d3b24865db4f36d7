"""The translator of JSON lines."""

from collections.abc import Iterable, Iterator
from typing import Any

from bridges.protocols.delimited import DelimitedTranslator
from bridges.protocols.jsonl.protocol import JsonLines
from bridges.protocols.jsonl.reading import Unreadable, compact, read, written
from bridges.protocols.protocol import tokens_of
from bridges.protocols.translator import Sent, Wire, frame, published
from bus.text import MARK
from bus.wire.frame import DATA_BYTES_MAX, TOKENS_MAX
from bus.wire.notation import token_in

_ABSENT = object()
_NAMES_MAX = 4096  # of members whose tokens are kept: to hash a name takes longer than to find it


class JsonTranslator(DelimitedTranslator):
    """A translator of lines that are JSON texts: the whole line, or its members by name.

    A line is rejected with the reasons of `reading.read`, and as `oversize`, `no object` (there are no
    members in it) and `unmatched` (none of the members asked for is there, or a member has no name). A
    member that is null says nothing; one that fits in no frame is rejected as `oversize`.
    """

    def __init__(self, record: JsonLines, wire: Wire) -> None:
        super().__init__(wire, b"\n", record.longest_bytes + 1)
        self._record, self._root = record, tokens_of(record.root)
        self._paths = [(path, tokens_of(names)) for path, names in (record.members or {}).items()]
        self._whole = tokens_of(record.send) if isinstance(record.send, tuple) else None
        setters = [(tokens_of(names), member) for names, member in record.setters.items()]
        self._setters = sorted(setters, key=lambda one: -len(one[0]))
        self._tokens: dict[str, int] = {}

    def _frames(self, run: bytes) -> Iterable[bytes]:
        line = run.removeprefix(MARK).strip(b" \t\r")
        if not line:
            return ()
        if len(line) > self._record.longest_bytes:
            return self._none("oversize", line)
        try:
            value = read(line, self._record.depth)
        except Unreadable as error:
            return self._none(error.args[0], line)
        if not self._paths and not self._record.split:
            return self._whole_line(line)
        if not isinstance(value, dict):
            return self._none("no object", line)
        return self._of_members(value, line)

    def _none(self, reason: str, line: bytes) -> tuple[bytes, ...]:
        self.reject(reason, len(line))
        return ()

    def _whole_line(self, line: bytes) -> tuple[bytes, ...]:
        if len(line) > DATA_BYTES_MAX:
            return self._none("oversize", line)
        self.found += 1
        return (frame(self._root, line),)

    def _of_members(self, value: dict[str, Any], line: bytes) -> list[bytes]:
        pairs = list(self._chosen(value) if self._paths else self._all(value))
        if not pairs:
            self.reject("unmatched", len(line))
            return []
        self.found += 1
        return [made for tokens, one in pairs if (made := self._member(tokens, one)) is not None]

    def _chosen(self, value: dict[str, Any]) -> Iterator[tuple[tuple[int, ...], Any]]:
        for path, tokens in self._paths:
            if (one := _at(value, path)) is not _ABSENT:
                yield tokens, one

    def _all(self, value: dict[str, Any]) -> Iterator[tuple[tuple[int, ...], Any]]:
        for name, one in value.items():
            if name and len(self._root) < TOKENS_MAX:
                yield (*self._root, self._token(name)), one
            elif len(value) > 1:  # else the whole line is
                self.reject("unmatched")

    def _token(self, name: str) -> int:
        found = self._tokens.get(name)
        if found is None:
            if len(self._tokens) >= _NAMES_MAX:
                self._tokens.clear()
            found = self._tokens[name] = token_in(name)
        return found

    def _member(self, tokens: tuple[int, ...], value: Any) -> bytes | None:
        data = b"" if value is None else encoded(written(value))
        if value is None or data is None or len(data) > DATA_BYTES_MAX:
            self.reject("null" if value is None else "encoding" if data is None else "oversize")
            return None
        return frame(tokens, data)

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        if (whole := published(message, self._whole)) is not None:
            return self._sent_whole(whole.data)
        for start, member in self._setters:
            if (found := published(message, start)) is not None:
                return self._fitting(_within(member, _value_of(found.data, self._record.depth)))
        return Sent(why="not sent here")

    def _sent_whole(self, data: bytes) -> Sent[bytes]:
        try:
            return self._fitting(compact(read(data, self._record.depth)))
        except Unreadable:
            return Sent(why="no text")

    def _fitting(self, text: str | None) -> Sent[bytes]:
        line = None if text is None else encoded(text)
        if line is None:
            return Sent(why="no text")
        return Sent(why="oversize") if len(line) > self._record.longest_bytes else Sent([line + b"\n"])


def encoded(text: str) -> bytes | None:
    """Return a text in UTF-8; None if half of a surrogate pair is in it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def _at(value: Any, path: str) -> Any:
    """Return the member at a path, whose parts are names in objects; the name may hold dots itself."""
    if path in value:
        return value[path]
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _value_of(data: bytes, depth: int) -> str | None:
    """Return data as JSON: as it is if it is JSON, else as a text; None if it is no UTF-8."""
    try:
        return compact(read(data, depth))
    except Unreadable:
        pass
    try:
        return compact(data.decode())
    except UnicodeDecodeError:
        return None


def _within(path: str, value: str | None) -> str | None:
    """Return an object with a value, JSON already, at a path."""
    for name in reversed(path.split(".")):
        value = None if value is None else f"{{{compact(name)}:{value}}}"
    return value
