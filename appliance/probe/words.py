"""The notation of types and messages on the command line. `bus.wire.notation` is that of patterns."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from appliance.status.ledger import reasons
from bridges.items import FD_ON_CLASSIC
from bus.errors import FrameError
from bus.names import Names
from bus.text import amount
from bus.wire import frame
from bus.wire.envelope import Envelope, take_apart
from bus.wire.frame import Frame, unpack

TYPES = {
    "pub": frame.PUB,
    "sub": frame.SUB,
    "cache": frame.CACHE,
    "remove": frame.REMOVE,
    "broker": frame.BROKER,
    "bridge": frame.BRIDGE,
}

_HINTS: Final = {
    FD_ON_CLASSIC: "add fd=true to the endpoint",
    "not sent here": "what may leave stands in the endpoint, as &send=...",
}


def type_of(word: str) -> int:
    """Return a frame's type from `pub`, `pub+cache`, or a number from 0 to 255. Raises `FrameError`."""
    if word.isascii() and word.isdigit() and len(word) <= 3 and int(word) <= 0xFF:
        return int(word)
    bits = 0
    for part in word.lower().split("+"):
        if part not in TYPES:
            raise FrameError(f"{word!r}: a type is {', '.join(TYPES)}, joined by +, or a number up to 255")
        bits |= TYPES[part]
    return bits


def type_word(kind: int) -> str:
    """Return a type as a word like `pub+cache`, or as a number if one of its bits has no name."""
    named = [word for word, bit in TYPES.items() if kind & bit]
    return "+".join(named) if sum(TYPES[word] for word in named) == kind and named else str(kind)


def text_of(data: bytes) -> str | None:
    """Return `data` as text, or None if it is not printable: control characters could affect a terminal."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def shown(data: bytes) -> str:
    """Return the data of a frame for a terminal: as text if it is text, else in hexadecimal."""
    text = text_of(data)
    return text if text else f"hex:{data.hex()}" if data else "(empty)"


def with_hints(counts: Mapping[str, int]) -> str:
    """Join counts by reason, with what to change at the endpoint where that is known."""
    hints = (hint for reason, hint in _HINTS.items() if reason in counts)
    return ": ".join((reasons(counts), *hints))


def line(message: bytes, names: Names, time_s: float) -> str:
    """Return one line about a message: `14:52:01.123456 pub fridge/temp 21.5`, or `not a frame`."""
    at = datetime.fromtimestamp(time_s).strftime("%H:%M:%S.%f")
    envelope, content, framed = take_apart(message)
    trunk = f" [{envelope.origin:08x}#{envelope.sequence}]" if envelope else ""
    if not framed:
        return f"{at} not a frame, {amount(len(content), 'byte')}: {shown(content)}{trunk}"
    kind, tokens, data = unpack(content)
    return f"{at} {type_word(kind)} {names.show(tokens)} {shown(data)}{trunk}"


def record(message: bytes, names: Names, time_s: float) -> dict[str, Any]:
    """Return a message as JSON values: its data always as `hex`, and as `text` or None."""
    envelope, content, framed = take_apart(message)
    if not framed:
        same = {"time": time_s, "frame": False, "text": text_of(content), "hex": content.hex()}
        return same | _stamp(envelope)
    kind, tokens, data = unpack(content)
    return {
        "time": time_s,
        "frame": True,
        "type": kind,
        "tokens": list(tokens),
        "pattern": names.show(tokens),
        "text": text_of(data),
        "hex": data.hex(),
        **_stamp(envelope),
    }


def _stamp(envelope: Envelope | None) -> dict[str, int]:
    return {k: v for k, v in envelope._asdict().items() if k != "flags"} if envelope else {}


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a line for each row, with columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()


def frame_in(message: bytes) -> Frame | None:
    """Return the frame of a message, with or without an envelope; None if it holds no frame."""
    _, content, framed = take_apart(message)
    return unpack(content) if framed else None
