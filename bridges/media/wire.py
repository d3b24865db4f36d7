"""The taps of a wire: what devices said there and what was said to them, before any protocol. Pure."""

from collections.abc import Callable, Sequence

Hear = Callable[[Sequence[bytes], bool, Sequence[int]], None]
"""A function that hears of items, in order: the bytes of each, whether they were sent, not received, and when
each was on the wire, in ns since 1970: 0 for one of which neither kernel nor adapter told, and () if they
told of none."""


class WireTap:
    """The taps of one link's wire, over all its openings.

    A pipe asks `hears` first: it is empty unless somebody records, and then nothing is to be done.
    """

    __slots__ = ("hears",)

    def __init__(self) -> None:
        self.hears: tuple[Hear, ...] = ()

    def tap(self, hear: Hear) -> None:
        """Call `hear` with all items from now on."""
        self.hears += (hear,)

    def untap(self, hear: Hear) -> None:
        """Stop calling `hear`. It is no error if it is not registered."""
        self.hears = tuple(other for other in self.hears if other is not hear)

    def tell(self, items: Sequence[bytes], is_sent: bool = False, came_ns: Sequence[int] = ()) -> None:
        """Show items to all taps."""
        for hear in self.hears:
            hear(items, is_sent, came_ns)


class Wired:
    """The base class of links whose pipes show their wire to taps."""

    wire_tap: WireTap


class WiredInside:
    """The base class of links in front of another `link`, whose wire it is."""

    link: object


def wire_of(link: object) -> WireTap | None:
    """Return the wire of a link, None if it has none to show."""
    while isinstance(link, WiredInside) and not isinstance(link, Wired):
        link = link.link
    return link.wire_tap if isinstance(link, Wired) else None
