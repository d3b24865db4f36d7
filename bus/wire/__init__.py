"""Frames, patterns, envelopes, batches and SP framing: bytes in, values out, no I/O."""

from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch, Buffer, from_payloads, payloads
from bus.wire.envelope import (
    ENVELOPE_BYTES,
    HOPS_DEFAULT,
    HOPS_MAX,
    MESSAGE_BYTES_MAX,
    Envelope,
    is_enveloped,
    message_bytes,
    split,
    wrap,
)
from bus.wire.frame import (
    BRIDGE,
    BROKER,
    CACHE,
    DATA_BYTES_MAX,
    FRAME_BYTES_MAX,
    FRAME_BYTES_MIN,
    PUB,
    REMOVE,
    SUB,
    TOKENS_MAX,
    Frame,
    frame_bytes,
    is_frame,
    pack,
    unpack,
)
from bus.wire.pattern import Pattern, check_tokens, collisions, token
from bus.wire.runs import alike, equal_run, layout
from bus.wire.sp import HANDSHAKE, PROTOCOL_BUS, Decoder, add_lead, handshake_fault

__all__ = [
    "BRIDGE", "BROKER", "CACHE", "DATA_BYTES_MAX", "ENVELOPE_BYTES", "FRAME_BYTES_MAX", "FRAME_BYTES_MIN",
    "HANDSHAKE", "HOPS_DEFAULT", "HOPS_MAX", "LENGTH", "LENGTH_BYTES", "MESSAGE_BYTES_MAX", "PROTOCOL_BUS",
    "PUB", "REMOVE", "SUB", "TOKENS_MAX", "Batch", "Buffer", "Decoder", "Envelope", "Frame", "Pattern",
    "add_lead", "alike", "check_tokens", "collisions", "equal_run", "frame_bytes", "from_payloads",
    "handshake_fault", "is_enveloped", "is_frame", "layout", "message_bytes", "pack", "payloads", "split",
    "token", "unpack", "wrap",
]  # fmt: skip
