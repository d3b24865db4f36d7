"""Framings: how messages lie on a stream, given to a `StreamPipe`. That of SP is here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

from bus.ledger import Stats
from bus.transports.scratch import shared_scratch
from bus.wire.batch import LENGTH_BYTES, Batch
from bus.wire.handshake import Greeting, Handshake
from bus.wire.sp import LEAD_IPC, Decoder, add_lead, divide

Encode = Callable[[Batch], tuple[bytes, int]]
Toil = Literal["", "chores", "busy"]
"""The queue of `bus.transports.chores` in which the next read waits for its turn; "" for none."""


class StreamDecoder(Protocol):
    """The decoder of one peer's stream: cuts it into messages."""

    @property
    def fault(self) -> str | None:
        """The reason why the framing is lost; None while it is not."""

    @property
    def waiting(self) -> int:
        """The bytes of a message that has begun and is not whole yet."""

    def buffer(self) -> memoryview:
        """Return the buffer to read into; never empty."""

    def feed(self, read_bytes: int) -> Any:
        """Return the messages that are whole now, with their `count`; None if there are none."""

    def revise(self, message_bytes: int) -> None:
        """Set another greatest length of messages. No effect where the format has a bound of its own."""

    def end(self) -> bytes | memoryview:
        """Return the bytes that became no message, because no more come."""


@dataclass(frozen=True, slots=True)
class Framing:
    """The framing of all peers of one link.

    `decoder(stats)` makes the decoder of one peer, which counts discarded input there.
    `handshake()` makes the handshake of one peer; without it, messages come at once. `encode(batch)` returns
    the bytes to send and how many messages they hold: the others cannot be carried and are dropped with the
    reason `unfit`, or the reasons and counts that it returns. Without `encode` a batch goes out as it is.

    `divide(data)` yields the end of each message in encoded bytes, and its body; without it messages cannot
    be taken back. `head_bytes` may stand before a message there. `answer(decoder)` returns the bytes to send
    to the peer after a read, and whether the peer has said goodbye; `farewell()` the bytes to send when the
    pipe is closed from here. `lost` is the reason why input is rejected when the decoder has a fault, and
    `cut` when a message is not whole at the end; "" if somebody else counts that.
    `toil(decoder)` says whether the last read was much work, and of which kind.
    """

    decoder: Callable[[Stats], StreamDecoder]
    handshake: Callable[[], Handshake] | None = None
    encode: Encode | None = None
    unfit: str | Callable[[], dict[str, int]] = "malformed"
    divide: Callable[[bytes], Iterator[tuple[int, bytes]]] | None = None
    head_bytes: int = 0
    answer: Callable[[Any], tuple[bytes, bool]] | None = None
    farewell: Callable[[], bytes] | None = None
    lost: str = "framing"
    toil: Callable[[Any], Toil] | None = None
    cut: str = "unfinished"


class Once:
    """An encoder that keeps its last result, because the hub offers the same batch to each peer in turn."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._last: tuple[Batch | None, tuple[bytes, int]] = None, (b"", 0)

    def __call__(self, batch: Batch) -> tuple[bytes, int]:
        if self._last[0] is not batch:
            self._last = batch, self._encode(batch)
        return self._last[1]


def sp_framing(message_bytes: int, ipc: bool = False) -> Framing:
    """Return the framing SP BUS over TCP, or over IPC (docs/wire/sp.md)."""
    lead = len(LEAD_IPC) if ipc else 0
    return Framing(
        lambda _: Decoder(shared_scratch(), message_bytes, lead),
        Greeting,
        _encode_ipc if ipc else None,
        divide=partial(divide, lead=lead),
        head_bytes=lead + LENGTH_BYTES,
    )


def _encode_ipc(batch: Batch) -> tuple[bytes, int]:
    return add_lead(batch), batch.count
