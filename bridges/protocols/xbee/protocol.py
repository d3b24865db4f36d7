"""The record of XBee modules."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from bridges.items import Exchange, Items
from bridges.protocols.endings import without_end
from bridges.protocols.protocol import Protocol, Way
from bridges.protocols.xbee.api import START
from bridges.protocols.xbee.packets import BROADCAST, RECEIVED_BYTES, REQUEST_BYTES, STATUS_BYTES
from bus.key_types import Delay, Name, Names
from bus.schema import Check, Length, Range, Single
from bus.text import nearest
from bus.wire.frame import TOKENS_MAX
from bus.wire.notation import text_of
from bus.wire.pattern import collisions

ALL: Final = "all"
"""The name of all modules: what is sent there is a broadcast."""
_ADDRESS: Final = re.compile(r"(?:0[xX])?((?:[0-9A-Fa-f]{2}[:-]?){7}[0-9A-Fa-f]{2})")
_RADIO_BYTES, _RADIO_S = 56, 0.0013


def address_in(text: str) -> int:
    """Return the address of 64 bits in a text of 16 hex digits. Raises ValueError."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'"{text[:40]}" is no address: write 16 hex digits in quotes, "0013A20041AE7D2C"')
    return int(re.sub("[:-]", "", found[1]), 16)


def written(address: int) -> str:
    """Return an address as patterns have it: 16 hex digits, the letters large."""
    return f"{address:016X}"


def _check_address(text: str) -> None:
    if address_in(text) == BROADCAST:
        raise ValueError(f"{text} is the address of all modules: send to {ALL}")


Address = Annotated[str, Check(_check_address, "an address of 16 hex digits")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Xbee(Protocol):
    """An XBee module in API mode: what another module sends is `ROOT/ADDRESS`, or `ROOT/NAME`.

    ADDRESS has 16 hex digits. A frame of such a pattern goes to that module, and one of `ROOT/all` to all.
    """

    MAKE: ClassVar = "bridges.protocols.xbee.translator:XbeeTranslator"
    key: ClassVar = "xbee"
    help: ClassVar = "packets of XBee modules in API mode"
    items: ClassVar[tuple[Items, ...]] = ("bytes",)
    holds: ClassVar = True

    root: Annotated[Names, Length(0, TOKENS_MAX - 1), "what the name of a module follows"] = ("xbee",)
    nodes: Annotated[Mapping[Name, Address], "names of modules, each with its address (SH and SL)"] = field(
        default_factory=dict
    )
    send: Annotated[
        tuple[str, ...],
        Length(0, 1024),
        Single(),
        "modules that are sent to: names, addresses, or `all` for a broadcast; without it, none",
    ] = ()
    escaped: Annotated[bool, "the module has API mode 2 (AP is 2), not 1"] = False
    longest_bytes: Annotated[int, Range(1, 256), "the longest data of a packet (NP) that is sent"] = 84
    unanswered: Annotated[
        int, Range(1, 32), "packets sent before their status comes; above 1 only with `rtscts`"
    ] = 1
    status_ms: Annotated[Delay, "how long the status of a packet may take; more with sleeping modules"] = (
        10_000
    )
    radio_bits_per_s: Annotated[int, Range(1000, 10_000_000), "rate of the radio, for `check`"] = 250_000

    def check(self) -> None:
        for name in self.nodes:
            if name == ALL or _ADDRESS.fullmatch(name):
                raise ValueError(f"nodes: {name} cannot be a name: it stands for other modules")
        if len(self.names_by_address) < len(self.nodes):
            raise ValueError("nodes: one address has two names")
        if len(self.destinations) < len(self.send):
            raise ValueError("send: a module is listed twice")
        for alike in collisions((*self.nodes, *self.destinations, ALL)).values():
            raise ValueError(f"{' and '.join(map(str, alike))} have one token: choose another name")

    @property
    def names_by_address(self) -> dict[int, str]:
        """The names of modules by their addresses."""
        return {address_in(text): name for name, text in self.nodes.items()}

    @property
    def destinations(self) -> dict[str, int]:
        """The addresses that are sent to, by the last names of their patterns. Raises ValueError."""
        known = self.names_by_address
        addresses = [self._address(word) for word in self.send]
        return {ALL if one == BROADCAST else known.get(one) or written(one): one for one in addresses}

    def _address(self, word: str) -> int:
        """Return the address of one item of `send`. Raises ValueError."""
        if word == ALL:
            return BROADCAST
        if word not in self.nodes and not _ADDRESS.fullmatch(word.strip()):
            hint = nearest(word, (*self.nodes, ALL))
            raise ValueError(f'send: "{word[:40]}" is neither one of nodes nor an address{hint}')
        return address_in(self.nodes.get(word, word))

    @property
    def noun(self) -> str:
        return "a frame of an XBee module"

    def guess(self, sample: bytes, guess: str) -> str:
        other = "API mode 1" if self.escaped else "API mode 2 (`escaped: true`)"
        return without_end([START], sample, f"{other}, no API mode, {guess}")

    @property
    def way(self) -> Way:
        return Way((self.root,), tuple((*self.root, name) for name in self.destinations))

    @property
    def data_bytes_max(self) -> int:
        return self.longest_bytes

    def exchange(self, data_bytes: int) -> Exchange:
        """Return a packet on the line, as it comes and as it leaves, with its status and its time by radio.

        By radio it takes one hop and its acknowledgement (IEEE 802.15.4: 56 bytes beside the data, and 1.3 ms
        until the channel is found free). Escapes are not counted.
        """
        radio_s = _RADIO_S + 8 * (_RADIO_BYTES + data_bytes) / self.radio_bits_per_s
        line_bytes = max(REQUEST_BYTES + data_bytes + STATUS_BYTES, RECEIVED_BYTES + data_bytes)
        return Exchange(line_bytes, radio_s / 2, 0.0)

    def names(self) -> Iterator[str]:
        yield from (*self.nodes, *map(written, self.names_by_address), ALL)

    def label(self) -> str:
        return f"xbee {text_of(self.root)}"
