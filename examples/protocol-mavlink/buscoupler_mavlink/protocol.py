"""The record of the protocol: its settings, and the facts about it. It imports nothing heavy."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bridges.items import Items
from bridges.protocols.protocol import Protocol, Way
from bus.key_types import Name, Names
from bus.needs import Library, Need
from bus.schema import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Mavlink(Protocol):
    """MAVLink 1 and 2, as autopilots speak it: each message is a frame `ROOT/SYSTEM/MESSAGE`, in JSON."""

    MAKE: ClassVar = "buscoupler_mavlink.translator:MavlinkTranslator"
    key: ClassVar = "mavlink"
    help: ClassVar = "MAVLink messages"
    items: ClassVar[tuple[Items, ...]] = ("bytes", "datagrams")

    root: Annotated[Names, "first names of all patterns"] = ("mav",)
    send: Annotated[tuple[Name, ...], "messages that may be sent; without them, none"] = ()
    system: Annotated[int, Range(1, 255), "our own system id, as whom messages are sent"] = 255
    component: Annotated[int, Range(1, 255), "our own component id"] = 190

    @property
    def way(self) -> Way:
        return Way((self.root,), tuple((*self.root, self.system, name) for name in self.send))

    def needs(self) -> Iterator[Need]:
        yield Library("pymavlink", "pymavlink", "")

    def names(self) -> Iterator[str]:
        yield from ("HEARTBEAT", "SYS_STATUS", "ATTITUDE", "GLOBAL_POSITION_INT", "STATUSTEXT")
