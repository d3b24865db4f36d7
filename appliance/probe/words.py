"""How patterns, types and messages are written on the command line, and how they are shown there.

A pattern is one word, its parts divided by slashes: `fridge/temp/7`. A part of digits, or `0x` and hex
digits, is that token; a part in double quotes is always a name; any other part is a name. `/` is empty.
"""

import argparse
from collections.abc import Callable, Iterable
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from bus.errors import BusError, FrameError, TokenError
from bus.wire import frame
from bus.wire.envelope import split
from bus.wire.frame import Frame, unpack
from bus.wire.pattern import Pattern, check_tokens, token

T = TypeVar("T")

TYPES = {
    "pub": frame.PUB,
    "sub": frame.SUB,
    "cache": frame.CACHE,
    "remove": frame.REMOVE,
    "broker": frame.BROKER,
    "bridge": frame.BRIDGE,
}


def argument(parse: Callable[[str], T]) -> Callable[[str], T]:
    """`parse` as argparse wants it: what is wrong with a word is wrong use, said in one line."""

    def checked(word: str) -> T:
        try:
            return parse(word)
        except (BusError, OSError, UnicodeDecodeError) as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return checked


def above_zero(word: str) -> float:
    """A number above 0, and not without end, for argparse."""
    try:
        number = float(word)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise argparse.ArgumentTypeError(f"{word!r} is no number above 0")
    return number


def whole_above_zero(word: str) -> int:
    """A whole number above 0, for argparse."""
    if not (word.isascii() and word.isdigit() and int(word)):
        raise argparse.ArgumentTypeError(f"{word!r} is no whole number above 0")
    return int(word)


def hex_bytes(word: str) -> bytes:
    """Bytes from hex digits, for argparse."""
    try:
        return bytes.fromhex(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is not pairs of hex digits") from None


def name_of(part: str) -> int | str:
    """One part of a pattern, or one name. Raises `TokenError` for a number that is no token."""
    if len(part) > 1 and part[0] == part[-1] == '"':
        return part[1:-1]
    if part.isascii() and part.isdigit():
        return token(int(part))
    if part[:2].lower() == "0x":
        try:
            return token(int(part, 16))
        except ValueError:
            return part
    return part


def names_in(word: str) -> list[int | str]:
    """The parts of a pattern's word. Raises `TokenError` for an empty part."""
    parts = word.split("/") if word not in ("", "/") else []
    if not all(parts):
        raise TokenError(f"{word!r}: a part between slashes is empty: write it like fridge/temp/7")
    return [name_of(part) for part in parts]


def pattern_of(word: str) -> Pattern:
    """The pattern that `word` writes. Raises `TokenError`."""
    return Pattern(*names_in(word))


def type_of(word: str) -> int:
    """A frame's type: `pub`, `pub+cache`, or a number from 0 to 255. Raises `FrameError`."""
    if word.isascii() and word.isdigit() and int(word) <= 0xFF:
        return int(word)
    bits = 0
    for part in word.lower().split("+"):
        if part not in TYPES:
            raise FrameError(f"{word!r}: a type is {', '.join(TYPES)}, joined by +, or a number up to 255")
        bits |= TYPES[part]
    return bits


def type_word(kind: int) -> str:
    """`pub+cache`, or the number where it has a bit without a name."""
    named = [word for word, bit in TYPES.items() if kind & bit]
    return "+".join(named) if sum(TYPES[word] for word in named) == kind and named else str(kind)


def read_names(source: str) -> list[int | str]:
    """Names from a file, one a line with `#` comments, or from a list `a,b,c`. Raises `OSError`."""
    if "," not in source and Path(source).exists():
        return names_from(Path(source).read_text(encoding="utf-8").splitlines())
    if "/" in source:
        raise FileNotFoundError(f"{source}: no such file, and no name has a slash")
    return names_from(source.split(","))


def names_from(lines: Iterable[str]) -> list[int | str]:
    """One name a line; what follows a `#` that starts a line or comes after a blank is a comment."""
    stripped = (f" {line}".partition(" #")[0].strip() for line in lines)
    return [name_of(line) for line in stripped if line]


class Names:
    """Tokens back to names, for those that are known. Raises `TokenError` if two of them collide."""

    def __init__(self, names: Iterable[int | str] = ()) -> None:
        known = list(names)
        check_tokens(known)
        self._names = {token(name): name for name in known if isinstance(name, str)}

    def show(self, tokens: Iterable[int]) -> str:
        """A pattern's word, as `pattern_of` reads it where names have no slash."""
        return "/".join(written(self._names.get(t, t)) for t in tokens) or "/"


def written(name: int | str) -> str:
    """A name as one part of a pattern; in quotes where it would be read as a number."""
    if isinstance(name, int):
        return str(name)
    shown = name if name.isprintable() else ascii(name)[1:-1]
    return shown if name_of(name) == name else f'"{shown}"'


def text_of(data: bytes) -> str | None:
    """`data` as text, if that shows all of it and cannot steer a terminal."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def shown(data: bytes) -> str:
    text = text_of(data)
    return text if text else f"hex:{data.hex()}" if data else "(empty)"


def line(message: bytes, names: Names, time_s: float) -> str:
    """`14:52:01.123456 pub fridge/temp 21.5`; what is no frame says so."""
    at = datetime.fromtimestamp(time_s).strftime("%H:%M:%S.%f")
    found = split(message)
    if found is None:
        return f"{at} not a frame, {len(message)} bytes: {shown(message)}"
    kind, tokens, data = unpack(found[1])
    trunk = f" [{found[0].origin:08x}#{found[0].sequence}]" if found[0] else ""
    return f"{at} {type_word(kind)} {names.show(tokens)} {shown(data)}{trunk}"


def record(message: bytes, names: Names, time_s: float) -> dict[str, Any]:
    """A message for programs: `hex` holds its data always, `text` where it is text."""
    found = split(message)
    if found is None:
        return {"time": time_s, "frame": False, "text": text_of(message), "hex": message.hex()}
    envelope, (kind, tokens, data) = found[0], unpack(found[1])
    trunk = {k: v for k, v in envelope._asdict().items() if k != "flags"} if envelope else {}
    return {
        "time": time_s,
        "frame": True,
        "type": kind,
        "tokens": list(tokens),
        "pattern": names.show(tokens),
        "text": text_of(data),
        "hex": data.hex(),
        **trunk,
    }


def frame_in(message: bytes) -> Frame | None:
    """The frame of a message, with or without an envelope; None where there is none."""
    found = split(message)
    return None if found is None else unpack(found[1])
