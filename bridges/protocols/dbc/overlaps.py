"""Signals of a message that share bits of one frame. Pure."""

from collections.abc import Iterator, Mapping

from bridges.protocols.dbc.layout import Message, Signal


def overlaps(message: Message) -> Iterator[str]:
    """Yield words about the signals of a message that share bits of one frame, if there are any."""
    places = [_bits(signal, message.size) for signal in message.signals]
    above = {signal.name: signal for signal in message.signals}
    pairs = [
        (one, other)
        for number, one in enumerate(message.signals)
        for place, other in enumerate(message.signals[:number])
        if places[number] & places[place] and _together(one, other, above)
    ]
    if pairs:
        one, other = pairs[0]
        more = f", and {len(pairs) - 1} more pairs" if pairs[1:] else ""
        yield f"{message.name}: the signals {other.name} and {one.name} overlap{more}"


def _bits(signal: Signal, size: int) -> int:
    """Return the bits of a signal in a frame, as a number of which the first byte is the highest."""
    mask = (1 << signal.bits) - 1
    if not signal.is_big:
        return int.from_bytes((mask << signal.start).to_bytes(size, "little"), "big")
    end = 8 * (signal.start // 8) + 7 - signal.start % 8 + signal.bits
    return mask << 8 * size - end


def _together(one: Signal, other: Signal, above: Mapping[str, Signal]) -> bool:
    """Return whether two signals can be in one frame: no selector must have two values for that."""
    needed = dict(_conditions(one, above))
    return all(ids & needed.get(name, ids) for name, ids in _conditions(other, above))


def _conditions(signal: Signal, above: Mapping[str, Signal]) -> Iterator[tuple[str, frozenset[int]]]:
    for _ in range(len(above)):
        if signal.ids is None or signal.selector not in above:
            return
        yield signal.selector, signal.ids
        signal = above[signal.selector]
