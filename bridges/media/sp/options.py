"""The settings of a link to an SP bus outside the file."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from bridges.media.options import Options
from bus.schema import AnyUrl, Bytes, doc
from bus.transports.options import Tls, check_tls, needs_certificate
from bus.transports.urls import check_dial


@dataclass(frozen=True, slots=True, kw_only=True)
class SpOptions(Options):
    """The settings of a link to an SP bus outside the file."""

    SHORT: ClassVar = "address"
    address: AnyUrl = field(
        metadata=doc("`tcp://`, `ipc://`, `ws://`, `wss://`, `tls+tcp://` or `inproc://`")
    )
    mode: Literal["dial", "listen"] = field(default="dial", metadata=doc("who opens the connection"))
    queue_bytes: Bytes | None = field(default=None, metadata=doc("bound of the queue to each peer"))
    message_bytes: Bytes | None = field(default=None, metadata=doc("longest message taken from a peer"))
    tls: Tls | None = field(default=None, metadata=doc("certificates, for `tls+tcp://` and `wss://`"))

    def check(self) -> None:
        check_tls(self.address, self.tls)
        if self.mode == "dial":
            check_dial(self.address)
        elif needs_certificate(self.address, self.tls):
            raise ValueError("listening with TLS needs tls: {cert_file: ...}")

    @property
    def device(self) -> str:
        return self.address
