"""The record of cannelloni, a tunnel of CAN frames (https://github.com/mguentner/cannelloni)."""

from dataclasses import dataclass
from typing import ClassVar

from bridges.items import Items
from bridges.protocols.protocol import Claim
from bridges.protocols.raw.protocol import Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Cannelloni(Raw):
    """The CAN frames of another cannelloni, with the patterns of `raw`."""

    MAKE: ClassVar = "bridges.protocols.cannelloni.translator:CannelloniTranslator"
    key: ClassVar = "cannelloni"
    help: ClassVar = "CAN frames of cannelloni, over UDP or TCP"
    items: ClassVar[tuple[Items, ...]] = ("datagrams", "bytes")
    deaf: ClassVar[bool] = True
    sourceless: ClassVar[bool] = False

    @property
    def claim(self) -> Claim | None:
        return None  # its peer is one, and sends nothing back

    def label(self) -> str:
        return Raw.label(self).replace("raw", "cannelloni", 1)
