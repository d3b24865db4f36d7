"""Forms of a line in the log: `text` for people, `journal` with systemd's priorities, `json` for programs."""

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Final

from appliance.status.times import stamp
from bus.text import plain_lines

Format = Callable[[logging.LogRecord, str], str]
"""A function that makes the lines of a record, without the last line end. The second argument stands in for
its message."""

_PRIORITIES: Final = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
_formatter: Final = logging.Formatter()


def text(record: logging.LogRecord, message: str) -> str:
    """Return the local time with its offset, level, logger and message, and the stack if there is one."""
    at = stamp(record.created, f".{int(record.msecs):03d}")
    head = f"{at} {record.levelname} {record.name}: "
    return "\n".join([head + _below(message), *_stack(record)])


def journal(record: logging.LogRecord, message: str) -> str:
    """Return each line with its priority in front. The journal adds the time itself."""
    priority = next((number for level, number in _PRIORITIES if record.levelno >= level), 7)
    lines = [*f"{record.name}: {_below(message)}".split("\n"), *_stack(record)]
    return "\n".join(f"<{priority}>{line}" for line in lines)


def as_json(record: logging.LogRecord, message: str) -> str:
    """Return one JSON object. `time` is in UTC; only events have `event`, and only errors `stack`."""
    fields = {
        "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": message,
    }
    stack = "\n".join(_stack(record))
    return json.dumps(fields | record.__dict__.get("fields", {}) | ({"stack": stack} if stack else {}))


def _below(message: str) -> str:
    """Return a message with its further lines indented: none of them looks like a line of the log."""
    return plain_lines(message).replace("\n", "\n  ")


def _stack(record: logging.LogRecord) -> list[str]:
    return _formatter.formatException(record.exc_info).split("\n") if record.exc_info else []


FORMATS: Final[dict[str, Format]] = {"text": text, "journal": journal, "json": as_json}


def default() -> str:
    """Return `journal` if systemd's journal reads our standard error, else `text`."""
    try:
        file = os.fstat(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):
        return "text"
    return "journal" if os.environ.get("JOURNAL_STREAM") == f"{file.st_dev}:{file.st_ino}" else "text"
