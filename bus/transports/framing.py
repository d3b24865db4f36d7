"""Framings: how messages lie on a stream, given to a `StreamPipe`. That of SP is here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from bus.wire.batch import Batch
from bus.wire.sp import HANDSHAKE, LEAD_IPC, SCRATCH_BYTES, Decoder, add_lead, handshake_fault


class StreamDecoder(Protocol):
    """Cuts one peer's stream into messages."""

    @property
    def fault(self) -> str | None:
        """The reason why the framing is lost; None while it is not."""

    def buffer(self) -> memoryview:
        """Return where to read into; never empty."""

    def feed(self, read_bytes: int) -> Any:
        """Return the whole messages now there, with their `count`; None if there are none."""

    def revise(self, message_bytes: int) -> None:
        """Allow messages of another length from now on. No effect where the format has a bound of its own."""


@dataclass(frozen=True, slots=True)
class Framing:
    """The framing of all peers of one link.

    `decoder(rejected)` makes the decoder of one peer; it may count by reason there what it throws away.
    `greeting` is sent first and expected from the peer; `greeting_fault(received)` says what is wrong with
    its first bytes, None while they are right. `encode(batch)` returns the bytes to send and how many
    messages they hold: the others cannot be carried and are dropped with the reason `unfit`. Without `encode`
    a batch goes out as it is. `lead` bytes stand before each u64 length of what is sent; None where there is
    no such length: then messages cannot be taken back.
    """

    decoder: Callable[[dict[str, int]], StreamDecoder]
    greeting: bytes = b""
    greeting_fault: Callable[[bytes], str | None] = lambda _: None
    encode: Callable[[Batch], tuple[bytes, int]] | None = None
    unfit: str = "malformed"
    lead: int | None = None


def sp_framing(message_bytes: int, ipc: bool = False) -> Framing:
    """Return SP BUS over TCP, or over IPC (docs/wire/sp.md). All its decoders share one scratch buffer."""
    scratch, lead = bytearray(SCRATCH_BYTES), len(LEAD_IPC) if ipc else 0
    return Framing(
        lambda _: Decoder(scratch, message_bytes, lead),
        HANDSHAKE,
        handshake_fault,
        _encode_ipc if ipc else None,
        lead=lead,
    )


def _encode_ipc(batch: Batch) -> tuple[bytes, int]:
    return add_lead(batch), batch.count
