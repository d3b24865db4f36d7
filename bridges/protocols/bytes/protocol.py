"""The record of the protocol of plain bytes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from bridges.items import Items
from bridges.protocols.protocol import Problem, Protocol, Way
from bus.key_types import Names
from bus.schema import Length, Range
from bus.wire.frame import DATA_BYTES_MAX, TOKENS_MAX

Chunks = Annotated[Names, Length(0, TOKENS_MAX - 2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes(Protocol):
    """Bytes without a form: each run of them is a frame under `receive/STREAM/NUMBER`.

    STREAM is a number that each opening of the line chooses, NUMBER counts its chunks from 0. Frames that
    leave have the same form, and a missing number is told; a frame with the pattern `send` alone is written
    as it is.
    """

    MAKE: ClassVar = "bridges.protocols.bytes.translator:BytesTranslator"
    key: ClassVar = "bytes"
    help: ClassVar = "bytes as they are, such as a serial line through a trunk"
    items: ClassVar[tuple[Items, ...]] = ("bytes",)

    receive: Annotated[Chunks, "pattern of what comes; stream and number follow it"] = ("bytes",)
    send: Annotated[
        Chunks | None, "pattern of what leaves: `receive` of the other end; without it, nothing"
    ] = None
    silence_ms: Annotated[
        float,
        Range(0, 86_400_000),
        "a chunk ends when nothing came for so long, and for 3 bytes of the line; 0: with each read",
    ] = 5
    chunk_bytes: Annotated[int, Range(1, DATA_BYTES_MAX), "the longest chunk"] = 1024
    on_gap: Annotated[
        Literal["go on", "end"],
        "when a chunk is missing: write what follows it, or close the device or connection and open it again",
    ] = "go on"

    @property
    def noun(self) -> str:
        return "a byte"

    @property
    def anew(self) -> bool:
        return True

    @property
    def way(self) -> Way:
        return Way((self.receive,), () if self.send is None else (self.send,))

    def problems(self) -> Iterator[Problem]:
        if self.send is not None and self.send == self.receive:
            yield Problem(
                "send and receive are one pattern: another such side would write what this one reads", False
            )
