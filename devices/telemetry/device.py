"""The settings and facts of telemetry. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from bus.key_types import Path, TapName
from bus.needs import Need, authority_needs
from bus.schema import Check, Length, Range, Single
from devices.device import DeviceSpec

PORT: Final = 4318
"""The port of OTLP over HTTP."""


def check_collector(text: str) -> None:
    """Check the address of a collector. Raises ValueError if it is no http:// or https:// address."""
    parts = urlsplit(text)
    try:
        port = PORT if parts.port is None else parts.port
    except ValueError:
        raise ValueError("its port is no number up to 65535") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port:
        raise ValueError(f"write http://HOST:{PORT} or https://HOST:{PORT}: OTLP over HTTP, not gRPC (4317)")
    if not text.isprintable() or " " in text:
        raise ValueError("an address has printable characters and no blanks")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("credentials in an address end in logs; it takes no query and no fragment")


def check_one_in(number: int) -> None:
    """Check a ratio of samples. Raises ValueError if it is no power of two."""
    if number & (number - 1):
        raise ValueError(
            f"{number} is no power of two: gateways with other ratios take part of the same ones"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySpec(DeviceSpec):
    """Telemetry, which sends traces and log lines to a collector of OpenTelemetry (docs/log.md)."""

    key: ClassVar = "telemetry"
    help: ClassVar = "sends traces and log lines to a collector"
    part: ClassVar = "telemetry"
    inside: ClassVar = True

    telemetry: Annotated[
        tuple[TapName, ...],
        Length(1, 64),
        Single(),
        "the bridges of that gateway to trace; of a bus, nothing",
    ]
    to: Annotated[
        Annotated[str, Check(check_collector, "an address of OTLP over HTTP")],
        "the collector, such as `http://collector:4318`; `/v1/traces` and `/v1/logs` are added",
    ]
    ca_file: Annotated[Path | None, "authorities to trust for https; the system's by default"] = None
    one_in: Annotated[
        Annotated[int, Range(1, 1 << 20), Check(check_one_in, "a power of two")],
        "one message in so many is traced, a power of two; all gateways choose the same ones",
    ] = 4096
    logs: Annotated[bool, "send the lines of the log, too"] = True

    def __post_init__(self) -> None:
        if len(set(self.telemetry)) != len(self.telemetry):
            raise ValueError("the same part is listed twice in telemetry: its messages would be traced twice")
        if self.ca_file is not None and not self.to.startswith("https:"):
            raise ValueError("ca_file is for https:// only")

    @property
    def joins(self) -> tuple[str, ...]:
        return self.telemetry

    def label(self, joined: Sequence[str]) -> str:
        return f"telemetry of {', '.join(joined)}, to {self.to}"

    def needs(self) -> Iterator[Need]:
        yield from authority_needs(self.ca_file)
