"""How much a medium carries, in worst-case seconds of wire time for one frame, and who promises more.

CAN: Cyphal transfers (docs/wire/can.md), every stuffable bit stuffed, 29-bit identifiers, interframe
space included. UART: 8N1, COBS with CRC-32. I2C: nine clocks a byte, mailbox segments of 30 bytes,
each with its poll, once for each target.
"""

from collections import defaultdict

from bus.wire.envelope import ENVELOPE_BYTES
from topologies.filters import begins, related, tokens
from topologies.findings import Finding, error, warning
from topologies.model import BridgeSpec, Can, I2c, Rate, Side, Topology, Uart
from topologies.segments import Joint, Segments, is_trunk, joints

FULL = 0.7  # the share above which a queue behind a medium grows long
_FD_SIZES = (*range(9), 12, 16, 20, 24, 32, 48, 64)


def frame_bytes(rate: Rate, spec: BridgeSpec) -> int:
    """Bytes of one TMQ frame of a promised rate."""
    count = max(len(rate.pattern), len(spec.pattern)) if rate.tokens is None else rate.tokens
    return 4 + 4 * count + rate.data_bytes


def can_seconds(size: int, can: Can) -> float | None:
    """Bus time of a transfer of `size` bytes; None when the bit rate is not told."""
    if can.bitrate is None:
        return None
    if not can.fd or can.mixed == "classic":
        return sum(80 + 10 * n for n in _classic(size)) / can.bitrate
    data_rate = (can.data_bitrate or can.bitrate) if can.bitrate_switch else can.bitrate
    return sum(57 / can.bitrate + _fd_data_bits(n) / data_rate for n in _fd(size))


def _classic(size: int) -> list[int]:
    """Data bytes of each CAN frame: 7 and the tail byte; CRC-16 when there are several."""
    if size <= 7:
        return [size + 1]
    full, rest = divmod(size + 2, 7)
    return [8] * full + ([rest + 1] if rest else [])


def _fd(size: int) -> list[int]:
    total = size if size <= 63 else size + 2
    full, rest = divmod(total, 63)
    return [64] * full + ([next(n for n in _FD_SIZES if n > rest)] if rest else [])


def _fd_data_bits(count: int) -> int:
    """Bits at the data rate: flags, length, data, stuff bits, stuff count, CRC with fixed stuff bits."""
    stuffable = 5 + 8 * count
    return stuffable + stuffable // 4 + 4 + (17 + 6 if count <= 16 else 21 + 7)


def uart_seconds(size: int, uart: Uart) -> float:
    """Line time of one message: COBS over it and its CRC-32, a zero on either side."""
    coded = size + 4
    return (coded + coded // 254 + 1 + 2) * 10 / uart.baud


def i2c_seconds(size: int, i2c: I2c) -> float:
    """Bus time of one message to or from every target; the dearer direction is taken."""
    carried = size + 4
    segments = -(-carried // 30)
    return len(i2c.targets) * (carried + 12 * segments) * 9 / i2c.clock_hz


def seconds(side: Side, size: int, trunk: bool) -> float | None:
    """Wire time of one frame of `size` bytes on a side; None where no capacity is known."""
    medium = side.medium
    if isinstance(medium, I2c):
        return i2c_seconds(size + ENVELOPE_BYTES, medium)  # always enveloped there
    size += ENVELOPE_BYTES if trunk else 0
    if isinstance(medium, Can):
        return can_seconds(size, medium)
    return uart_seconds(size, medium) if isinstance(medium, Uart) else None


def find_overloads(topology: Topology) -> list[Finding]:
    """Errors for media that cannot carry what is promised; warnings where they shed, or are nearly full."""
    segments, load = Segments(topology), defaultdict[str, float](float)
    users: dict[str, list[Joint]] = defaultdict(list)
    findings = []
    for joint in joints(topology):
        if joint.gateway != joint.spec.on[0] or not joint.spec.rates:
            continue
        if isinstance(joint.side.medium, Can) and joint.side.medium.bitrate is None:
            text = "rates are promised, but without bitrate nobody can say whether CAN carries them"
            findings.append(warning(joint.side.where, text))
            continue
        load[segments.of(joint)] += _share(topology, joint)
        users[segments.of(joint)].append(joint)
    findings += [f for name, joined in users.items() if (f := _judge(name, load[name], joined))]
    return findings + _strays(topology)


def _share(topology: Topology, joint: Joint) -> float:
    trunk = is_trunk(topology, joint.side)
    crossing = [r for r in joint.spec.rates if _crosses(joint.spec, joint.side, r)]
    times = (seconds(joint.side, frame_bytes(r, joint.spec), trunk) or 0.0 for r in crossing)
    return sum(r.frames_per_s * time for r, time in zip(crossing, times, strict=True))


def _crosses(spec: BridgeSpec, side: Side, rate: Rate) -> bool:
    """Whether frames of a rate may cross a side: when in doubt, they do."""
    pattern = max(tokens(rate.pattern), tokens(spec.pattern), key=len)
    if not related(tokens(side.pattern), pattern):
        return False
    allow, deny = side.allow.both, side.deny.both
    allowed = not allow or any(related(tokens(p), pattern) for p in allow)
    return allowed and not any(begins(tokens(p), pattern) for p in deny)


def _judge(name: str, share: float, joined: list[Joint]) -> Finding | None:
    place = joined[0].side.where
    text = f"{name} is promised {share:.0%} of what it can carry"
    if share <= FULL:
        return None
    if share <= 1:
        return warning(place, f"{text}: bursts will wait")
    if all(joint.side.shed for joint in joined):
        return warning(place, f"{text}: it will shed")
    return error(place, f"{text}: lower the rate, filter, or give it a shed policy")


def _strays(topology: Topology) -> list[Finding]:
    return [
        warning(rate.where, "no frame of this pattern crosses the bridge, whose own pattern differs")
        for spec in topology.bridges.values()
        for rate in spec.rates
        if not related(tokens(rate.pattern), tokens(spec.pattern))
    ]
