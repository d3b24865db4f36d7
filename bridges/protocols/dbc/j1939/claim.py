"""The claim of an address of J1939, without which nothing is sent. Pure.

Two nodes that claim one address compare their NAMEs: the lower one has it. Source: SAE J1939-81.
"""

from collections.abc import Callable
from math import inf
from typing import Final, Literal

from bridges.items import CanFrame
from bridges.protocols.dbc.j1939.pgn import ADDRESS_CLAIMED, GLOBAL, NULL, identifier_of

WAIT_S: Final = 0.25
"""The time that others have to object to a claim, in seconds, and between two looks whether we may act."""

State = Literal["quiet", "claiming", "claimed", "lost"]


class Claim:
    """The claim of `address` with our `name`.

    `quiet`: this gateway may not act, so it claims nothing: the one that may does, with the same name.
    `lost`: another node has a lower name, and nothing is sent any more until the wire is opened again.
    """

    def __init__(self, address: int, name: int, may_act: Callable[[float], bool]) -> None:
        self.address, self.name, self._may_act = address, name, may_act
        self.state: State = "quiet"
        self.winner = 0
        self.due_s = 0.0

    def turn(self, now_s: float) -> list[CanFrame]:
        """Do what is due, and return what to send: a claim once we may act, if not lost."""
        if now_s < self.due_s or self.state == "lost":
            return []
        self.due_s = now_s + WAIT_S
        if not self._may_act(now_s):
            self.state = "quiet"
        elif self.state == "quiet":
            self.state = "claiming"
            return [self._frame(self.address)]
        else:
            self.state = "claimed"
        return []

    def heard(self, source: int, data: bytes | bytearray) -> list[CanFrame]:
        """Take the claim of another node. Return what to send: our claim again, or that it is lost."""
        name = int.from_bytes(data[:8], "little")
        if source != self.address or len(data) < 8 or name == self.name or self.state in ("quiet", "lost"):
            return []
        if self.name < name:
            return [self._frame(self.address)]
        self.state, self.winner, self.due_s = "lost", name, inf
        return [self._frame(NULL)]

    def requested(self, pgn: int, destination: int) -> list[CanFrame]:
        """Return the answer to a request for a PGN."""
        if pgn != ADDRESS_CLAIMED or destination not in (GLOBAL, self.address) or self.state == "quiet":
            return []
        return [self._frame(NULL if self.state == "lost" else self.address)]

    def _frame(self, source: int) -> CanFrame:
        return identifier_of(ADDRESS_CLAIMED, source), self.name.to_bytes(8, "little"), 0

    @property
    def condition(self) -> str:
        """The trouble with the address, in a few words; "" if there is none."""
        if self.state != "lost":
            return ""
        return f"J1939 address {self.address} is lost to NAME 0x{self.winner:016x}: nothing is sent"
