"""The record of the protocol: its settings, and the facts about it. It imports nothing heavy."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, ClassVar

from bridges.items import Items
from bridges.protocols.protocol import Problem, Protocol, Way
from bus.key_types import Name, Names
from bus.kinds import load
from bus.needs import Library, Need
from bus.schema import Range
from bus.text import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Mavlink(Protocol):
    """MAVLink 1 and 2, as autopilots speak it: each message is a frame `ROOT/SYSTEM/MESSAGE`, in JSON."""

    MAKE: ClassVar = "buscoupler_mavlink.translator:MavlinkTranslator"
    key: ClassVar = "mavlink"
    help: ClassVar = "MAVLink messages"
    items: ClassVar[tuple[Items, ...]] = ("bytes", "datagrams")

    root: Annotated[Names, "first names of all patterns"] = ("mav",)
    send: Annotated[tuple[Name, ...], "messages that may be sent; without them, none"] = ()
    dialect: Annotated[
        Name, "definitions of messages, as pymavlink names them: `ardupilotmega` for ArduPilot, or `all`"
    ] = "common"
    system: Annotated[int, Range(1, 255), "our own system id, as whom messages are sent"] = 255
    component: Annotated[int, Range(1, 255), "our own component id"] = 190

    @property
    def way(self) -> Way:
        return Way((self.root,), tuple((*self.root, self.system, name) for name in self.send))

    def needs(self) -> Iterator[Need]:
        yield Library("pymavlink", "pymavlink", "")

    def problems(self) -> Iterator[Problem]:
        if find_spec("pymavlink") is None:
            return  # `needs` says so
        if "." in self.dialect or find_spec(f"pymavlink.dialects.v20.{self.dialect}") is None:
            yield Problem(f"dialect: pymavlink has none of the name {self.dialect}: write common, or all")
            return
        known = load("buscoupler_mavlink.translator:kinds_of")(self.dialect) if self.send else {}
        for name in self.send:
            if name not in known:
                yield Problem(f"send: dialect {self.dialect} has no message {name}{nearest(name, known)}")

    def names(self) -> Iterator[str]:
        yield from ("HEARTBEAT", "SYS_STATUS", "ATTITUDE", "GLOBAL_POSITION_INT", "STATUSTEXT")
