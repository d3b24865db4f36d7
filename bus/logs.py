"""Lines of the log of gateways on a reserved pattern (docs/wire/log.md). Pure."""

import json
from typing import Any, Final, NamedTuple

from bus.fitting import fitted, packed
from bus.wire.frame import DATA_BYTES_MAX, PUB, pack, published
from bus.wire.notation import pattern_of
from bus.wire.pattern import Pattern

WORD: Final = "buscoupler/log"
PATTERN: Final = pattern_of(WORD)
LEVELS: Final = ("warning", "error", "critical")
_WORDS: Final = {Pattern(level): level for level in LEVELS}
_TEXT_BYTES_MAX: Final = 1024
_NAME_BYTES_MAX: Final = 200


class Line(NamedTuple):
    """One line of a log.

    `time_ns` since 1970; `level` is one of `LEVELS`; `source` is the gateway, `logger` its part.
    """

    time_ns: int
    level: str
    source: str
    logger: str
    text: str

    def frame(self) -> bytes:
        """Return the line as a PUB frame on (buscoupler, log, level).

        The data is JSON; a long text is cut.
        """
        record = {
            "time_ns": self.time_ns,
            "source": _cut(self.source, _NAME_BYTES_MAX),
            "logger": _cut(self.logger, _NAME_BYTES_MAX),
            "text": _cut(self.text, _TEXT_BYTES_MAX),
        }
        data = packed(record, ascii=False)
        if len(data) > DATA_BYTES_MAX:  # JSON writes control characters in six bytes
            record["text"] = _cut(self.text, _NAME_BYTES_MAX)
            data = fitted(record, ("logger", "source", "text"), ascii=False)
        return pack(PUB, (*PATTERN, *Pattern(self.level)), data)


def _cut(text: str, size: int) -> str:
    """Return the beginning of a text, in at most `size` bytes of UTF-8; surrogates are replaced."""
    return text.encode(errors="replace")[:size].decode(errors="ignore")


def read_line(message: bytes) -> Line | None:
    """Return the log line in a message; None if the message holds none."""
    frame = published(message, PATTERN)
    level = None if frame is None else _WORDS.get(Pattern(*frame.tokens[len(PATTERN) :]))
    if frame is None or level is None:
        return None
    try:
        fields = json.loads(frame.data.decode())
    except (ValueError, RecursionError):
        return None
    return _line(level, fields)


def _line(level: str, fields: Any) -> Line | None:
    match fields:
        case {"time_ns": int(time_ns), "source": str(source), "logger": str(logger), "text": str(text)}:
            return Line(time_ns, level, source, logger, text)
    return None
