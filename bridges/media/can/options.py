"""The settings of a CAN or CAN FD bus."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from bridges.media.options import Options
from bus.schema import CanNode, Delay, Name, QueueBytes, Range, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class CanOptions(Options):
    """The settings of a CAN or CAN FD bus."""

    SHORT: ClassVar = "channel"
    channel: Annotated[str | int, "as the interface names it: `can0`, `/dev/ttyACM0`, `239.74.163.2`"]
    interface: Annotated[Name, "python-can's name of the adapter"] = "socketcan"
    fd: Annotated[bool, "the controller is a CAN FD one"] = False
    bitrate: Annotated[
        Annotated[int, Range(1_000, 20_000_000)] | None,
        "bits a second, nominal; SocketCAN takes it from `ip link`, `check` from here",
    ] = None
    data_bitrate: Annotated[
        Annotated[int, Range(1_000, 20_000_000)] | None, "bits a second of the data phase, with `fd`"
    ] = None
    bitrate_switch: Annotated[bool, "send data at `data_bitrate`, with `fd`"] = True
    mixed: Annotated[
        Literal["fd", "classic"], "what is sent where `fd` and classic nodes share the bus; both are heard"
    ] = "fd"
    node: Annotated[CanNode | None, "Cyphal node id; the gateway's `node` by default"] = None
    subject: Annotated[int, Range(0, 8191), "Cyphal subject id of TMQ"] = 0x1234
    age_ms: Annotated[Delay, "frames that waited longer are not sent; a `shed` with an age stands in"] = 500
    queue_bytes: Annotated[QueueBytes, "bound of the queue to the bus"] = 65_536
    options: Annotated[
        Mapping[Name, Scalar], "anything else the python-can interface takes, passed on as it is"
    ] = field(default_factory=dict)

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
