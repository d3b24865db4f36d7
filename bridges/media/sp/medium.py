"""The record of a link to an SP bus outside the file."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bridges.media.medium import Medium
from bridges.media.sp.options import SpOptions
from bus.transports.options import STREAMS
from bus.urls import split_url

if TYPE_CHECKING:
    from bridges.media.shedding import Shed
    from bus.hub import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Sp(SpOptions, Medium):
    """An address outside this file: another appliance, or any SP bus."""

    key: ClassVar = "url"
    help: ClassVar = "an address outside this file"

    def link(self, node: int | None = None, shed: "Shed | None" = None, **retry: Any) -> "Link":
        from bridges.media.shed_pipe import staged
        from bus.transports.links import bus_link

        made = bus_link(self.address, self.mode, self.queue_bytes, self.message_bytes, self.tls, **retry)
        return staged(made, shed)

    def label(self) -> str:
        return f"{self.mode} {self.address}"

    def wire(self, machine: str) -> str:
        return f"url {self.address}"

    @property
    def dials(self) -> str:
        return self.address if self.mode == "dial" else ""

    @property
    def listens(self) -> str:
        return self.address if self.mode == "listen" else ""

    def unshed(self) -> str:
        scheme = split_url(self.address).scheme
        return "" if scheme in STREAMS else f"{scheme}:// queues by itself, no shed policy reaches that"
