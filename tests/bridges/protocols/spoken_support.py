"""Helpers of tests of protocols: a wire in memory, frames as patterns and data, and sides on real wires."""

from collections.abc import Iterable, Sequence
from typing import Any

from bridges.items import Items
from bridges.protocols.protocol import Protocol
from bridges.protocols.translator import Translator, Wire
from bus.ledger import Stats
from bus.names import Names
from bus.wire.frame import pack, unpack
from bus.wire.notation import pattern_of


def wire(items: Items = "bytes", **more: Any) -> Wire:
    """Return a wire without anything at its other end."""
    return Wire("test", items, Stats(), **more)


def translator(record: Protocol, items: Items = "bytes", **more: Any) -> Translator[Any]:
    """Return the translator that a record makes on a wire in memory."""
    return record.translator(wire(items, **more))


def told(messages: Iterable[bytes], *names: str) -> list[tuple[str, bytes]]:
    """Return frames as pattern, with these names known, and data."""
    known = Names(names)
    return [(known.show(one.tokens), one.data) for one in map(unpack, messages)]


def message(pattern: str, data: bytes = b"") -> bytes:
    """Return a frame that publishes data under a pattern, as `send` writes it."""
    return pack(1, pattern_of(pattern), data)


def fed(made: Translator[Any], items: Sequence[Any], now_s: float = 0.0) -> list[bytes]:
    """Return the frames that items complete, one item after the other."""
    return [found for item in items for found in made.receive([item], now_s)]
