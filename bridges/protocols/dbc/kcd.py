"""A KCD as cantools reads it: messages and signals that it refuses are mended or left out. Pure."""

from collections.abc import Iterator
from xml.etree import ElementTree

from bridges.items import IDENTIFIER, STANDARD_MAX
from bridges.protocols.dbc.j1939.transport import BYTES_MAX
from bridges.protocols.dbc.layout import BITS_MAX, Flaw

_BUS, _MESSAGE, _MULTIPLEX, _GROUP, _SIGNAL = (
    f"{{http://kayak.2codeornot2code.org/1.0}}{name}"
    for name in ("Bus", "Message", "Multiplex", "MuxGroup", "Signal")
)


def mended_kcd(text: str) -> tuple[str, list[Flaw]]:
    """Return a KCD without what is wrong in its messages, and that. What is no XML stays as it is, and so
    does what is nested too deeply to be written."""
    try:
        root = ElementTree.fromstring(text)
        flaws = [flaw for bus in root.iter(_BUS) for flaw in _messages(bus)]
        return (ElementTree.tostring(root, encoding="unicode"), flaws) if flaws else (text, [])
    except (ElementTree.ParseError, RecursionError):
        return text, []


def _messages(bus: ElementTree.Element) -> Iterator[Flaw]:
    """Yield the flaws of the messages of a bus, and keep in it only what is read."""
    kept = list[ElementTree.Element]()
    for one in bus:
        if one.tag == _MESSAGE and (why := _refusal(one)):
            yield Flaw(f"{why}: left out", "")
            continue
        kept.append(one)
        if one.tag == _MESSAGE:
            yield from _message(one, one.get("name", ""))
    bus[:] = kept


def _refusal(message: ElementTree.Element) -> str:
    """Return why a message is left out; "" if it is not."""
    name, size = message.get("name", ""), message.get("length", "auto")
    number = _whole(message.get("id", ""), 0)
    if not name or number is None or not 0 <= number <= IDENTIFIER:
        return f'{name or "a message"}: its id "{message.get("id", "")}" is none'
    if size != "auto" and not (size.isdecimal() and int(size[:9]) <= BYTES_MAX):
        return f'{name}: its length "{size}" is none'
    return ""


def _message(message: ElementTree.Element, name: str) -> Iterator[Flaw]:
    """Yield the flaws of a message that is read."""
    number = _whole(message.get("id", ""), 0) or 0
    if number > STANDARD_MAX and message.get("format") != "extended":
        message.set("format", "extended")
        yield Flaw(f"{name}: its id {number:#x} is extended, and not marked so: read as extended", name)
    above = [message]
    while above:
        yield from _signals(above.pop(), name, above)


def _signals(place: ElementTree.Element, name: str, more: list[ElementTree.Element]) -> Iterator[Flaw]:
    """Yield the flaws of the signals in an element, and keep in it only the others. `more` gets what has
    signals of its own."""
    kept = list[ElementTree.Element]()
    for one in place:
        if one.tag == _GROUP and _whole(one.get("count", "")) is None:
            yield Flaw(f"{name}: a group has no count: left out", name, blocks=True)
        elif one.tag in (_MULTIPLEX, _SIGNAL) and not _is_placed(one):
            yield Flaw(f"{name}/{one.get('name', '')} has no place: left out", name, blocks=True)
        else:
            kept.append(one)
    place[:] = kept
    more += (one for one in reversed(kept) if one.tag in (_MULTIPLEX, _GROUP))


def _is_placed(signal: ElementTree.Element) -> bool:
    """Return whether a signal has a name and bits."""
    offset, bits = _whole(signal.get("offset", "")), _whole(signal.get("length", "1"))
    is_there = (
        offset is not None and 0 <= offset < 8 * BYTES_MAX and bits is not None and 0 < bits <= BITS_MAX
    )
    return is_there and bool(signal.get("name")) and signal.get("endianess", "little") in ("little", "big")


def _whole(text: str, base: int = 10) -> int | None:
    """Return the integer that a text is, None if it is none."""
    try:
        return int(text[:20], base)
    except ValueError:
        return None
