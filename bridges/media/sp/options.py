"""The settings of a link to an SP bus outside the file."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from bridges.media.options import Options
from bus.schema import AnyUrl, Bytes
from bus.transports.options import Tls, check_tls, needs_certificate
from bus.urls import check_dial


@dataclass(frozen=True, slots=True, kw_only=True)
class SpOptions(Options):
    """The settings of a link to an SP bus outside the file."""

    SHORT: ClassVar = "address"
    address: Annotated[AnyUrl, "`tcp://`, `ipc://`, `ws://`, `wss://`, `tls+tcp://` or `inproc://`"]
    mode: Annotated[Literal["dial", "listen"], "who opens the connection"] = "dial"
    queue_bytes: Annotated[Bytes | None, "bound of the queue to each peer"] = None
    message_bytes: Annotated[Bytes | None, "longest message taken from a peer"] = None
    tls: Annotated[Tls | None, "certificates, for `tls+tcp://` and `wss://`"] = None

    def check(self) -> None:
        check_tls(self.address, self.tls)
        if self.mode == "dial":
            check_dial(self.address)
        elif needs_certificate(self.address, self.tls):
            raise ValueError("listening with TLS needs tls: {cert_file: ...}")

    @property
    def device(self) -> str:
        return self.address
