"""What a bridge and a broker say to each other about who forwards a pattern (docs/wire/lease.md). Pure."""

from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from bus.wire.frame import BRIDGE, BROKER, FRAME_BYTES_MIN, frame_bytes, pack

CLAIM_TYPE, GRANT_TYPE = BRIDGE | BROKER, BRIDGE
VERSION = 1
NAME_BYTES_MAX = 255
READY, HOLDING, RESIGN = 0x01, 0x02, 0x04
GRANTED, PLEASE_RESIGN, ACTING, ALONE = 0x01, 0x02, 0x04, 0x08
_CLAIM = Struct(">BBHIIHH")
_GRANT = Struct(">BBHIIHH")

Tokens = tuple[int, ...]


class Claim(NamedTuple):
    """A candidate's heartbeat. `order`: 0 is the best; `id` (u32, not 0) is new in every process.

    `epoch`: the highest it has heard of, its own while it holds. `number` (u16) comes back in the answer.
    `bridge` and the pattern say what it stands for, `name` who it is.
    """

    tokens: Tokens
    bridge: str
    id: int
    order: int = 0
    epoch: int = 0
    heartbeat_ms: int = 100
    number: int = 0
    ready: bool = False
    holding: bool = False
    resign: bool = False
    name: str = ""


class Grant(NamedTuple):
    """A broker's word: `holder` (0: nobody) may forward, in `epoch`, for `lease_ms`.

    `granted`: that is who asked, and `number` is that of the last claim heard from it. `acting`: the holder
    has said that it forwards. `alone`: nobody's earlier lease can still run.
    """

    tokens: Tokens
    bridge: str
    granted: bool = False
    please_resign: bool = False
    acting: bool = False
    alone: bool = False
    holder: int = 0
    order: int = 0
    epoch: int = 0
    lease_ms: int = 0
    number: int = 0
    name: str = ""


def pack_claim(claim: Claim) -> bytes:
    """Raises `FrameError` for a pattern or number that does not fit."""
    flags = READY * claim.ready | HOLDING * claim.holding | RESIGN * claim.resign
    fields = flags, claim.order, claim.id, claim.epoch, claim.heartbeat_ms, claim.number
    head = _CLAIM.pack(VERSION, *fields)
    return pack(CLAIM_TYPE, claim.tokens, head + _names(claim.bridge, claim.name))


def pack_grant(grant: Grant) -> bytes:
    flags = GRANTED * grant.granted | PLEASE_RESIGN * grant.please_resign
    flags |= ACTING * grant.acting | ALONE * grant.alone
    fields = flags, grant.order, grant.holder, grant.epoch, grant.lease_ms, grant.number
    head = _GRANT.pack(VERSION, *fields)
    return pack(GRANT_TYPE, grant.tokens, head + _names(grant.bridge, grant.name))


def unpack_claim(frame: bytes) -> Claim | None:
    """The claim in a frame, or None where it is none."""
    found = _parts(frame, CLAIM_TYPE, _CLAIM)
    if found is None:
        return None
    tokens, (flags, order, id, epoch, heartbeat_ms, number), bridge, name = found
    if not id or not heartbeat_ms:
        return None
    bits = bool(flags & READY), bool(flags & HOLDING), bool(flags & RESIGN)
    return Claim(tokens, bridge, id, order, epoch, heartbeat_ms, number, *bits, name)


def unpack_grant(frame: bytes) -> Grant | None:
    """The grant in a frame, or None where it is none."""
    found = _parts(frame, GRANT_TYPE, _GRANT)
    if found is None:
        return None
    tokens, (flags, order, holder, epoch, lease_ms, number), bridge, name = found
    granted, please, acting, alone = (bool(flags & bit) for bit in (GRANTED, PLEASE_RESIGN, ACTING, ALONE))
    numbers = holder, order, epoch, lease_ms, number
    return Grant(tokens, bridge, granted, please, acting, alone, *numbers, name)


def _names(bridge: str, name: str) -> bytes:
    first, second = (text.encode()[:NAME_BYTES_MAX] for text in (bridge, name))
    return bytes((len(first),)) + first + second


def _parts(frame: bytes, kind: int, layout: Struct) -> tuple[Tokens, tuple[int, ...], str, str] | None:
    """Tokens, the numbers behind the version, both names; what later versions change makes it None."""
    if frame_bytes(frame) != len(frame) or not frame or frame[0] != kind:
        return None
    start = FRAME_BYTES_MIN + 4 * frame[1]
    data = frame[start:]
    try:
        version, *numbers = layout.unpack_from(data)
        length = data[layout.size]
        bridge = data[layout.size + 1 : layout.size + 1 + length]
        name = data[layout.size + 1 + length :]
        if version != VERSION or len(bridge) != length or len(name) > NAME_BYTES_MAX:
            return None
        tokens = Struct(f">{frame[1]}I").unpack_from(frame, FRAME_BYTES_MIN)
        return tokens, tuple(numbers), bridge.decode(), name.decode()
    except (StructError, IndexError, UnicodeDecodeError):
        return None
