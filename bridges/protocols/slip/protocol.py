"""The record of SLIP."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from bridges.items import Items
from bridges.protocols.endings import without_end
from bridges.protocols.protocol import Protocol, Way
from bus.key_types import Names
from bus.schema import Range
from bus.wire.frame import DATA_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip(Protocol):
    """Packets between END bytes (SLIP, RFC 1055), each of which is the data of a frame."""

    MAKE: ClassVar = "bridges.protocols.slip.translator:SlipTranslator"
    key: ClassVar = "slip"
    help: ClassVar = "packets of SLIP (RFC 1055)"
    items: ClassVar[tuple[Items, ...]] = ("bytes",)

    receive: Annotated[Names, "pattern of each packet that comes"] = ("slip",)
    send: Annotated[Names | None, "pattern of the frames whose data leave as packets; without it, none"] = (
        None
    )
    longest_bytes: Annotated[int, Range(1, DATA_BYTES_MAX), "the longest packet"] = DATA_BYTES_MAX

    @property
    def noun(self) -> str:
        return "a packet"

    def guess(self, sample: bytes, guess: str) -> str:
        return without_end([b"\xc0"], sample, guess)

    @property
    def way(self) -> Way:
        return Way((self.receive,), () if self.send is None else (self.send,))
