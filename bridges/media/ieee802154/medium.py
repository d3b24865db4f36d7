"""The record of a network of IEEE 802.15.4 radios."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from bridges.media.medium import CLOCK_S, SEAL_BYTES, Medium, Word
from bus.needs import Need, Probe
from bus.schema import Check, Range
from bus.wire.envelope import ENVELOPE_BYTES

DATAGRAM_BYTES_MAX: Final = 110
"""The most data of a radio frame: 127 bytes less a header of 15, with our long address, and an FCS of 2."""
NUMBER_BYTES: Final = 2
_CRC_BYTES, _OFFSET_BYTES = 4, 2
_AROUND_BYTES: Final = 6 + 15 + 2 + 70 + 20
"""The time of a radio frame beside its data, in bytes: preamble, header, FCS, the longest first backoff of
CSMA-CA (7 times 20 symbols), and the pause behind a long frame (40 symbols)."""


def _check_interface(text: str) -> None:
    if not text or len(text) > 15 or "/" in text:
        raise ValueError("interface is needed: the name of one such as wpan0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ieee802154(Medium):
    """IEEE 802.15.4 radios of one PAN, all of which hear each other: long frames are fragmented."""

    LINK: ClassVar = "bridges.media.ieee802154.link:RadioLink"
    key: ClassVar = "ieee802154"
    tmq_items: ClassVar = "datagrams"
    signs: ClassVar = True
    seal_bytes: ClassVar = SEAL_BYTES
    clock_s: ClassVar = CLOCK_S
    help: ClassVar = "IEEE 802.15.4 radios"
    words: ClassVar = (
        Word("ieee802154", ("interface",), "ieee802154:wpan0?pan=0xbeef", "the radios of a PAN", ("pan",)),
    )

    interface: Annotated[str, Check(_check_interface, "text"), "network interface of the radio"]
    pan: Annotated[int, Range(0, 0xFFFE), "identifier of the PAN, which the interface has, too"]
    datagram_bytes: Annotated[
        int, Range(64, DATAGRAM_BYTES_MAX), "longest datagram sent; less where the radio encrypts"
    ] = DATAGRAM_BYTES_MAX
    bits_per_s: Annotated[int, Range(1000, 10_000_000), "rate of the radio, for `check`"] = 250_000
    queue_bytes: Annotated[int, Range(8192, 1 << 40), "bound of the queue to the radio"] = 65536

    @property
    def device(self) -> str:
        return self.interface

    def label(self) -> str:
        return f"ieee802154 PAN {self.pan:#06x} on {self.interface}"

    def wire(self, machine: str) -> str:
        return f"ieee802154 PAN {self.pan:#06x}"

    def needs(self) -> Iterator[Need]:
        yield Probe("bridges.media.ieee802154.card:trouble", (self.interface, self.pan))

    @property
    def shared(self) -> bool:
        return True

    def seconds(self, size: int, trunk: bool) -> float | None:
        """Return the time on the air, with the longest first backoff of each radio frame."""
        rest = _CRC_BYTES + NUMBER_BYTES
        whole = size + (ENVELOPE_BYTES if trunk else 0)
        room = self.datagram_bytes - rest
        count, data = 1, whole + rest
        if whole > room:
            head = ENVELOPE_BYTES + _OFFSET_BYTES
            count = -(-size // (room - head))
            data = size + count * (head + rest)
        return 8 * (data + count * _AROUND_BYTES) / self.bits_per_s
