"""The messages that tests say and hear at sides of brokers."""

from bus.wire.frame import PUB, pack, unpack
from bus.wire.pattern import Pattern
from tests.conformance.pair import Side
from tests.helpers.peers import until


def named(*names: int | str, data: bytes = b"") -> bytes:
    return pack(PUB, Pattern(*names), data)


async def is_up(*sides: Side) -> None:
    await until(lambda: all(one.link is not None and one.link.state == "up" for one in sides))


def numbers(side: Side) -> list[int]:
    return [int.from_bytes(unpack(message).data[:4], "big") for message in side.heard.messages]


def numbered(number: int, size: int = 4) -> bytes:
    return named("plant", "temp", data=number.to_bytes(4, "big") + bytes(size - 4))
