"""The record of a CAN or CAN FD bus."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from bridges.media.can.codec import transfer_seconds
from bridges.media.can.options import CanOptions
from bridges.media.medium import Medium, Taken, Word
from bus.wire.envelope import ENVELOPE_BYTES

if TYPE_CHECKING:
    from bridges.media.shedding import Shed
    from bus.hub import Link


_UDP_PORT = 43113  # of python-can's udp_multicast, where none is given


@dataclass(frozen=True, slots=True, kw_only=True)
class Can(CanOptions, Medium):
    """A CAN or CAN FD bus: Cyphal/CAN v1 message transfers, through python-can."""

    key: ClassVar = "can"
    help: ClassVar = "a CAN bus"
    words: ClassVar = (
        Word(
            "can",
            ("channel",),
            "can:can0?node=42&interface=socketcan&fd=true",
            "a CAN channel; other keys go to python-can",
            needed=("node",),
            # what is said in a word is to arrive, however long the bus takes
            defaults={"age_ms": 10_000},
        ),
    )

    def link(self, node: int | None = None, shed: "Shed | None" = None, **retry: Any) -> "Link":
        from bridges.media.can.link import CanLink

        return CanLink(replace(self, node=self.node or node), shed=shed, **retry)

    def label(self) -> str:
        rates = "/".join(str(rate) for rate in (self.bitrate, self.data_bitrate) if rate)
        adapter = "" if self.interface == "socketcan" else self.interface
        words = ("can", adapter, str(self.channel), "FD" if self.fd else "", rates)
        return " ".join(word for word in words if word)

    def wire(self, machine: str) -> str:
        if self.interface == "udp_multicast":
            return f"can {self.channel}:{self.options.get('port', _UDP_PORT)}"
        return f"can {self.device} of {machine}"

    @property
    def shared(self) -> bool:
        return True

    def takes(self, node: int | None) -> Iterator[Taken]:
        node = self.node or node
        if node is not None:
            # The identifier on the wire holds node and subject: only both together collide.
            yield Taken(f"CAN node id {node} (subject {self.subject:#x})", on_wire=True)

    @property
    def needs_node(self) -> bool:
        return self.node is None

    def seconds(self, size: int, trunk: bool) -> float | None:
        if self.bitrate is None:
            return None
        size += ENVELOPE_BYTES if trunk else 0
        if not self.sends_fd:
            return transfer_seconds(size, self.bitrate)
        data_rate = (self.data_bitrate or self.bitrate) if self.bitrate_switch else self.bitrate
        return transfer_seconds(size, self.bitrate, data_rate)

    def unjudged(self) -> str:
        return "" if self.bitrate else "without bitrate nobody can say whether CAN carries them"
