"""The settings of a CAN or CAN FD bus."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from bridges.media.options import Options
from bus.schema import CanNode, Delay, Name, QueueBytes, Range, Scalar, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class CanOptions(Options):
    """The settings of a CAN or CAN FD bus."""

    SHORT: ClassVar = "channel"
    channel: str | int = field(
        metadata=doc("as the interface names it: `can0`, `/dev/ttyACM0`, `239.74.163.2`")
    )
    interface: Name = field(default="socketcan", metadata=doc("python-can's name of the adapter"))
    fd: bool = field(default=False, metadata=doc("the controller is a CAN FD one"))
    bitrate: Annotated[int, Range(1_000, 20_000_000)] | None = field(
        default=None,
        metadata=doc("bits a second, nominal; SocketCAN takes it from `ip link`, `check` from here"),
    )
    data_bitrate: Annotated[int, Range(1_000, 20_000_000)] | None = field(
        default=None, metadata=doc("bits a second of the data phase, with `fd`")
    )
    bitrate_switch: bool = field(default=True, metadata=doc("send data at `data_bitrate`, with `fd`"))
    mixed: Literal["fd", "classic"] = field(
        default="fd", metadata=doc("what is sent where `fd` and classic nodes share the bus; both are heard")
    )
    node: CanNode | None = field(
        default=None, metadata=doc("Cyphal node id; the gateway's `node` by default")
    )
    subject: Annotated[int, Range(0, 8191)] = field(default=0x1234, metadata=doc("Cyphal subject id of TMQ"))
    age_ms: Delay = field(
        default=500, metadata=doc("frames that waited longer are not sent; a `shed` with an age stands in")
    )
    queue_bytes: QueueBytes = field(default=65_536, metadata=doc("bound of the queue to the bus"))
    options: Mapping[Name, Scalar] = field(
        default_factory=dict, metadata=doc("anything else the python-can interface takes, passed on as it is")
    )

    def check(self) -> None:
        if self.data_bitrate is not None and not self.fd:
            raise ValueError("data_bitrate needs fd: true")
        # Passed on beside these, a second value would end in a TypeError when the bus is opened.
        twice = {"channel", "interface", "fd", "bitrate", "data_bitrate"} & set(self.options)
        if twice:
            raise ValueError(f"{', '.join(sorted(twice))} belongs beside options, not in it")
        if not self.options.get("local_loopback", True):
            raise ValueError("without local_loopback nothing tells when a frame was sent")

    @property
    def device(self) -> str:
        return f"{self.interface}:{self.channel}"

    @property
    def sends_fd(self) -> bool:
        return self.fd and self.mixed == "fd"
