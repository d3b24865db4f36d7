"""The judgement of the patterns of raw CAN frames by their identifiers: exact where ids are too many to list.

Pure.
"""

from collections.abc import Mapping
from typing import NamedTuple

from bridges.items import ERROR
from bridges.protocols.selection import Selection

Tokens = tuple[int, ...]


class Names(NamedTuple):
    """The patterns of identifiers: `named`, and all others as `root` and the identifier."""

    root: Tokens
    named: Mapping[Tokens, int]

    def parted(self, tokens: Tokens) -> tuple[int, int | None]:
        """Return the identifier that a pattern means, -1 for none, and the flags that stand behind it."""
        if (one := self.named.get(tokens)) is not None:
            return one, None
        if tokens and (one := self.named.get(tokens[:-1])) is not None:
            return one, tokens[-1]
        place = len(self.root)
        if tokens[:place] != self.root or not 1 <= len(tokens) - place <= 2:
            return -1, None
        return tokens[place], tokens[place + 1] if len(tokens) > place + 1 else None


class RawJudge(NamedTuple):
    """The judge of a side: what is in `received` enters, and what is in `sent` leaves.

    `spares`: what is sent does not enter.
    """

    names: Names
    received: Selection
    sent: Selection
    spares: bool = False

    def enters(self, tokens: Tokens) -> bool:
        """Tell whether the frame of a pattern may come in."""
        identifier, _ = self.names.parted(tokens)
        if identifier < 0 or (self.spares and not identifier & ERROR and identifier in self.sent):
            return False
        return bool(identifier & ERROR) or identifier in self.received

    def leaves(self, tokens: Tokens) -> bool:
        """Tell whether the frame of a pattern may be sent."""
        identifier, _ = self.names.parted(tokens)
        return identifier >= 0 and not identifier & ERROR and identifier in self.sent
