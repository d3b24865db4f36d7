"""Claims and grants, by which candidates and brokers agree which candidate forwards (docs/wire/lease.md).

Pure.
"""

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from bus.errors import FrameError
from bus.wire.frame import BRIDGE, BROKER, pack, unpack

CLAIM_TYPE, GRANT_TYPE = BRIDGE | BROKER, BRIDGE
VERSION = 1
NAME_BYTES_MAX = 255
ANOTHER = 0xFFFFFFFF  # in a grant, for the id of a holder that is not the receiver
LEASE_MS = 250
LEASE_REAL_TIME_MS = 100
"""The shortest lease, by default, of a candidate with real-time priority: it has its turn at once."""
LEASE_MAX_MS = 2000
"""The longest lease that a candidate on a machine that is late asks for, by default."""
RESIGNED_LEASES: Final = 4
"""For so many of its leases, a candidate that has resigned is chosen after all others."""
LEASE_MS_MIN, LEASE_MS_MAX = 10, 0xFFFF
HEARTBEATS = 2.5  # in a lease, so that a frozen holder is replaced within three
_NUMBERS = Struct(">BBHIIHH")  # version, flags, order, id, epoch, ms, number

Tokens = tuple[int, ...]


def heartbeat_ms_of(lease_ms: int) -> int:
    """Return the time between two claims, in ms, that renews a lease of `lease_ms` in time."""
    return int(min(max(LEASE_MS_MIN, lease_ms), LEASE_MS_MAX) / HEARTBEATS)


def lease_s_of(heartbeat_ms: int) -> float:
    """Return the lease, in seconds, of a candidate that sends a claim every `heartbeat_ms`."""
    return min(max(LEASE_MS_MIN, HEARTBEATS * heartbeat_ms), LEASE_MS_MAX) / 1000


class Claim(NamedTuple):
    """A candidate's heartbeat. `order`: 0 is the best. `id`: new in every process, not 0 or `ANOTHER`.

    `heartbeat_ms` asks for a lease of 2.5 times that; a candidate on a machine that is late sends claims more
    often than it says.
    `epoch`: the highest that the candidate knows, or its own while it holds the lease. The answer repeats
    `number` (u16). `tokens` (the pattern) and `bridge` name the lease, `name` the candidate.
    """

    tokens: Tokens
    bridge: str
    id: int
    order: int = 0
    epoch: int = 0
    heartbeat_ms: int = heartbeat_ms_of(LEASE_MS)
    number: int = 0
    ready: bool = False
    holding: bool = False
    resign: bool = False
    name: str = ""


class Grant(NamedTuple):
    """A broker's answer: candidate `holder` may forward, in `epoch`, for `lease_ms`. 0 is nobody.

    `granted`: the receiver is the holder; all other candidates get `ANOTHER` for its id. `number` is that of
    the last claim from the receiver. `acting`: the holder has said that it forwards. `alone`: no earlier
    lease can still run. `orderly`: the last holder that forwarded gave the lease up, or there was none.
    `late`: it lost the lease by silence, and is back: it was late or stopped, not dead. Older brokers never
    say these.
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
    orderly: bool = False
    late: bool = False


def pack_claim(claim: Claim) -> bytes:
    """Pack a claim as a frame. Raises `FrameError` for a pattern, name or number that does not fit."""
    flags = _flags(claim.ready, claim.holding, claim.resign)
    numbers = flags, claim.order, claim.id, claim.epoch, claim.heartbeat_ms, claim.number
    return _pack(CLAIM_TYPE, claim.tokens, numbers, claim.bridge, claim.name)


def pack_grant(grant: Grant) -> bytes:
    """Pack a grant as a frame. Raises `FrameError` for a pattern, name or number that does not fit."""
    flags = _flags(grant.granted, grant.please_resign, grant.acting, grant.alone, grant.orderly, grant.late)
    numbers = flags, grant.order, grant.holder, grant.epoch, grant.lease_ms, grant.number
    return _pack(GRANT_TYPE, grant.tokens, numbers, grant.bridge, grant.name)


def unpack_claim(frame: bytes) -> Claim | None:
    """Return the claim in a frame, or None if it holds none."""
    found = _unpack(CLAIM_TYPE, frame)
    if found is None:
        return None
    tokens, (flags, order, id, epoch, heartbeat_ms, number), bridge, name = found
    if id in (0, ANOTHER) or not heartbeat_ms:
        return None
    ready, holding, resign = _bits(flags, 3)
    return Claim(tokens, bridge, id, order, epoch, heartbeat_ms, number, ready, holding, resign, name)


def unpack_grant(frame: bytes) -> Grant | None:
    """Return the grant in a frame, or None if it holds none."""
    found = _unpack(GRANT_TYPE, frame)
    if found is None:
        return None
    tokens, (flags, order, holder, epoch, lease_ms, number), bridge, name = found
    granted, please, acting, alone, orderly, late = _bits(flags, 6)
    numbers = holder, order, epoch, lease_ms, number
    return Grant(tokens, bridge, granted, please, acting, alone, *numbers, name, orderly, late)


def _flags(*bits: bool) -> int:
    return sum(bit << place for place, bit in enumerate(bits))


def _bits(flags: int, count: int) -> Iterator[bool]:
    return (bool(flags >> place & 1) for place in range(count))


def _pack(kind: int, tokens: Tokens, numbers: tuple[int, ...], *names: str) -> bytes:
    bridge, name = (text.encode() for text in names)
    if len(bridge) > NAME_BYTES_MAX:  # the beginning of a name may be that of another bridge
        raise FrameError(f"a bridge's name of {len(bridge)} bytes is longer than {NAME_BYTES_MAX}")
    name = name[:NAME_BYTES_MAX].decode(errors="ignore").encode()
    try:
        head = _NUMBERS.pack(VERSION, *numbers)
    except StructError as error:
        raise FrameError(f"{numbers}: {error}") from error
    return pack(kind, tokens, head + bytes((len(bridge),)) + bridge + name)


def _unpack(kind: int, frame: bytes) -> tuple[Tokens, tuple[int, ...], str, str] | None:
    """Return the tokens, the numbers behind the version, and both names; None for another type or version."""
    try:
        type, tokens, data = unpack(frame)
        version, *numbers = _NUMBERS.unpack_from(data)
        length, names = data[_NUMBERS.size], data[_NUMBERS.size + 1 :]
        if type != kind or version != VERSION or not 0 <= len(names) - length <= NAME_BYTES_MAX:
            return None
        return tokens, tuple(numbers), names[:length].decode(), names[length:].decode()
    except (FrameError, StructError, IndexError, UnicodeDecodeError):
        return None
