"""Long messages in many frames at once: joined, and read as those of one frame are."""

import pytest

pytest.importorskip("numpy")
pytest.importorskip("cantools")

import numpy as np

from bridges.items import EXTENDED, CanFrame
from bridges.protocols.dbc.columns import Decoder
from bridges.protocols.dbc.database import load
from bridges.protocols.dbc.j1939.joining import Joiner
from bridges.protocols.dbc.j1939.transport import announce, packets
from bridges.protocols.dbc.series import PAD, Frames, Series
from tests.bridges.protocols.dbc.dbc_support import GNSS, SAIL, TRUCK, WHOLE, fast

EACH_NS = 1_000_000


def columns(frames: list[CanFrame]) -> Frames:
    sizes = np.array([len(data) for _, data, _ in frames], np.int64)
    octets = np.frombuffer(b"".join(bytes(data) for _, data, _ in frames) + bytes(PAD), np.uint8)
    identifiers = np.array([identifier for identifier, _, _ in frames], np.uint32)
    return Frames(identifiers, np.cumsum(sizes) - sizes, sizes, octets)


def joined(decoder: Decoder, joiner: Joiner, frames: list[CanFrame], first: int = 0) -> list[Series]:
    ts_ns = (first + np.arange(len(frames))) * EACH_NS
    return decoder.decode(columns(frames), ts_ns, joiner).series


def by_row(found: list[Series], first: int = 0) -> dict[tuple[int, int | None, str], float]:
    return {
        (first + row, one.source, one.signal.name): value
        for one in found
        for row, value in zip(one.rows.tolist(), one.values.tolist(), strict=True)
    }


def transport(data: bytes, source: int) -> list[CanFrame]:
    frames = [announce(0xFECA, len(data)), *packets(data)]
    return [
        (EXTENDED | (0x18EB if n else 0x18EC) << 16 | 0xFF00 | source, one, 0) for n, one in enumerate(frames)
    ]


def test_transports_and_fast_packets_are_joined_wherever_batches_end() -> None:
    """Three senders of faults at once, each with its own data; a cut anywhere changes nothing."""
    decoder = Decoder(load(TRUCK, "dbc").messages.values())
    wholes = {source: bytes(range(source, source + 20)) for source in (3, 4, 5)}
    frames = [one for some in zip(*(transport(d, s) for s, d in wholes.items()), strict=True) for one in some]
    rows = {source: len(frames) - 3 + n for n, source in enumerate(wholes)}
    expected = {
        (rows[source], source, name): value
        for source, data in wholes.items()
        for name, value in {
            "Lamp": data[0] >> 6,
            "First": int.from_bytes(data[2:6], "little"),
            "Last": int.from_bytes(data[16:20], "little"),
        }.items()
    }
    for cut in range(len(frames) + 1):
        joiner = Joiner({})
        found = by_row(joined(decoder, joiner, frames[:cut]))
        found |= by_row(joined(decoder, joiner, frames[cut:], cut), cut)
        assert found == expected


def test_fast_packets_are_values_at_their_last_frame() -> None:
    decoder, rejected = Decoder(load(SAIL, "dbc").messages.values()), dict[str, int]()
    frames = [*fast(WHOLE)[1:], *fast(WHOLE, 3), *fast(WHOLE, 4)[:-1]]
    found = by_row(joined(decoder, Joiner(rejected), frames))
    assert found.keys() == {(12, 0x20, name) for name in ("Sid", "Date", "Time", "Lat", "Lon")}
    assert found[12, 0x20, "Lat"] == 52.5
    assert rejected == {"unannounced": 6}


def test_a_database_without_j1939_joins_nothing() -> None:
    decoder = Decoder(load(SAIL, "dbc", False).messages.values())
    assert joined(decoder, Joiner({}), fast(WHOLE, identifier=GNSS)) == []
