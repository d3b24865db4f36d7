"""A KCD as cantools reads it: messages and signals that it refuses are mended or left out. Pure."""

from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

from bridges.items import STANDARD_MAX
from bridges.protocols.dbc.layout import Flaw

_SPACE: Final = "{http://kayak.2codeornot2code.org/1.0}"
_EXTENDED_MAX: Final = (1 << 29) - 1
_SIZE_MAX: Final = 1785
_BITS_MAX: Final = 512


def mended_kcd(text: str) -> tuple[str, list[Flaw]]:
    """Return a KCD without what is wrong in its messages, and that. What is no XML stays as it is."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return text, []
    flaws = [
        flaw
        for bus in root.iter(f"{_SPACE}Bus")
        for message in bus.findall(f"{_SPACE}Message")
        for flaw in _message(bus, message)
    ]
    return (ElementTree.tostring(root, encoding="unicode"), flaws) if flaws else (text, [])


def _message(bus: ElementTree.Element, message: ElementTree.Element) -> Iterator[Flaw]:
    name = message.get("name", "")
    number, size = _whole(message.get("id", ""), 0), message.get("length", "auto")
    bits = 0 if number is None else number
    if not name or number is None or not 0 <= bits <= _EXTENDED_MAX:
        bus.remove(message)
        yield Flaw(f'{name or "a message"}: its id "{message.get("id", "")}" is none: left out', "")
        return
    if size != "auto" and not (size.isdecimal() and int(size[:9]) <= _SIZE_MAX):
        bus.remove(message)
        yield Flaw(f'{name}: its length "{size}" is none: left out', "")
        return
    if bits > STANDARD_MAX and message.get("format") != "extended":
        message.set("format", "extended")
        yield Flaw(f"{name}: its id {bits:#x} is extended, and not marked so: read as extended", name)
    yield from _signals(message, name)


def _signals(above: ElementTree.Element, name: str) -> Iterator[Flaw]:
    """Yield the flaws of the signals below an element, which are taken out of it."""
    for one in list(above):
        if one.tag == f"{_SPACE}MuxGroup" and _whole(one.get("count", "")) is None:
            above.remove(one)
            yield Flaw(f"{name}: a group has no count: left out", name, blocks=True)
        elif one.tag in (f"{_SPACE}Multiplex", f"{_SPACE}Signal") and not _is_placed(one):
            above.remove(one)
            yield Flaw(f"{name}/{one.get('name', '')} has no place: left out", name, blocks=True)
        elif one.tag in (f"{_SPACE}Multiplex", f"{_SPACE}MuxGroup"):
            yield from _signals(one, name)


def _is_placed(signal: ElementTree.Element) -> bool:
    """Return whether a signal has a name and bits."""
    offset, bits = _whole(signal.get("offset", "")), _whole(signal.get("length", "1"))
    is_there = (
        offset is not None and 0 <= offset < 8 * _SIZE_MAX and bits is not None and 0 < bits <= _BITS_MAX
    )
    return is_there and bool(signal.get("name")) and signal.get("endianess", "little") in ("little", "big")


def _whole(text: str, base: int = 10) -> int | None:
    """Return the integer that a text is, None if it is none."""
    try:
        return int(text[:20], base)
    except ValueError:
        return None
