"""The settings and facts of an upload. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os.path import normpath
from typing import Annotated, ClassVar

from bus.key_types import Bytes, Path, Seconds
from bus.needs import Directory, Need, Readable, Room, Secret
from bus.schema import Check
from devices.device import CAPTURE_LIBRARIES, DeviceSpec


def check_target(text: str) -> None:
    """Check the target of an upload. Raises ValueError if it is no s3:// address and no directory."""
    scheme, found, rest = text.partition("://")
    place = rest.partition("?")[0]
    if found and scheme != "s3":
        raise ValueError(f'"{scheme}://" is not known here: give s3://BUCKET/PREFIX, or a directory')
    if found and "@" in place:
        raise ValueError("credentials in an address end in logs: put them into a file (credentials:)")
    if not (place.strip("/") if found else text):
        raise ValueError("names no place: give s3://BUCKET/PREFIX, or a directory")


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadSpec(DeviceSpec):
    """An upload, which stores finished capture files elsewhere, each row once (docs/capture.md)."""

    key: ClassVar = "upload"
    help: ClassVar = "stores captures elsewhere"
    SERVICE: ClassVar = "devices.upload.service:Upload"

    upload: Annotated[Path, "the directory of a tap or log of that gateway, whose finished files are stored"]
    to: Annotated[
        Annotated[str, Check(check_target, "a directory or an address")],
        "where: `s3://BUCKET/PREFIX`, or a directory such as a mounted one. All gateways may have the same",
    ]
    credentials: Annotated[
        Path | None,
        "a file of credentials as Amazon's own tools read it (`[default]`, `aws_access_key_id`, "
        "`aws_secret_access_key`); by default those of the gateway's user or machine are taken",
    ] = None
    spool_bytes: Annotated[
        Bytes, "size of the files that wait, beyond which the oldest is given up, and counted"
    ] = 1 << 30
    every_s: Annotated[Seconds, "how often it looks for finished files"] = 10

    def __post_init__(self) -> None:
        if self.credentials is not None and "://" not in self.to:
            raise ValueError("credentials are for s3://, and this upload goes to a directory")
        if "://" not in self.to and f"{normpath(self.to)}/".startswith(f"{normpath(self.upload)}/"):
            raise ValueError("to is within the directory that is uploaded")

    @property
    def joins(self) -> tuple[str, ...]:
        return ()

    def label(self, joined: Sequence[str]) -> str:
        return f"upload of {self.upload}, to {self.to}"

    def reads(self) -> Iterator[str]:
        yield self.upload

    def needs(self) -> Iterator[Need]:
        yield from CAPTURE_LIBRARIES
        yield Directory(self.upload)
        yield Room(self.upload, self.spool_bytes, "spool_bytes")
        if self.credentials is not None:
            yield Readable(self.credentials)
            yield Secret(self.credentials)
        if "://" not in self.to:
            yield Directory(self.to)
