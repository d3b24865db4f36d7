"""The record of the protocol of text lines."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from bridges.items import Items
from bridges.protocols.protocol import Protocol, Way
from bus.schema import Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(Protocol):
    """Lines of text, each of which is the data of a frame."""

    MAKE: ClassVar = "bridges.protocols.lines.translator:LinesTranslator"
    key: ClassVar = "lines"
    help: ClassVar = "lines of text"
    items: ClassVar[tuple[Items, ...]] = ("bytes",)

    receive: Annotated[Names, "pattern of each line that comes"] = ("lines",)
    send: Annotated[Names | None, "pattern of the frames whose data leave as lines; without it, none"] = None

    @property
    def way(self) -> Way:
        return Way((self.receive,), () if self.send is None else (self.send,))
