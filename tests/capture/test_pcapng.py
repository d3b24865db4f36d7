"""pcapng, written and read back."""

import io
from pathlib import Path

import pytest

from capture import pcapng
from capture.pcapng import LINKTYPE_USER0, Writer, packets
from capture.schema import TIME_MAX_NS, Kind
from tests.capture.capture_support import STAMPED, row

S = 10**9
TIMES = {
    "a tick of a second, from 1970 on": (0, 0, 1_800_000_000, 1_800_000_000 * S),
    "ns from a day on": (9, 1_700_000_000, 86_400 * S + 7, 1_700_086_400 * S + 7),
    "us from before 1970 on": (6, -1_000, 1_000_000_001, 1_000),
    "a tick of 2**-30 s": (0x9E, 5, (1 << 60) + 1, ((1 << 30) + 5) * S),
    "a tick of 2**-10 s": (0x8A, -1, (1 << 41) + 1, ((1 << 31) - 1) * S + S // 1024),
    "before 1970": (9, -1, 5, None),
    "after the last time": (9, TIME_MAX_NS // S, S, None),
}
"""The resolution of an interface, its offset in s, and a time in ticks and in ns."""


def test_pcapng_of_any_byte_order_and_with_a_torn_tail() -> None:
    writer = Writer()
    rows = [row(n, message) for n, message in enumerate([*STAMPED, b"", b"x"])]
    data = writer.head() + b"".join(map(writer.blocks, rows))
    assert list(packets(io.BytesIO(data))) == rows
    for cut in (1, 5, 30):
        left = list[str]()
        assert list(packets(io.BytesIO(data[:-cut]), left.append)) == rows[:-1]
        assert left == [pcapng.CUT]
    for damaged in (b"\6\0\0\0\1\0\0\0", b"\x0a\x0d\x0d\x0a" + bytes(8)):
        left = []
        assert list(packets(io.BytesIO(data + damaged), left.append)) == rows
        assert left == [pcapng.DAMAGED]


def test_names_fit_in_packets_of_wireshark() -> None:
    names = [f"name-{n}" for n in range(10_000)] + ["long" * 10_000, "last"]
    data = Writer().names(names, 7)
    found = list(packets(io.BytesIO(Writer().head() + data)))
    assert {(packet.kind, packet.ts_ns) for packet in found} == {(Kind.NAMES, 7)}
    assert max(len(packet.message) for packet in found) <= 1 << 15
    lines = [line for packet in found for line in packet.message.decode().splitlines()]
    assert lines == [*names[:-2], "last"]


def test_a_time_that_no_capture_can_hold_is_passed_by() -> None:
    writer = Writer()
    data = writer.head() + writer.blocks(row(1, STAMPED[0]))
    nanoseconds, seconds = b"\x09\0\x01\0\x09", b"\x09\0\x01\0\x00"  # a tick of the interface
    assert data.count(nanoseconds) == len(list(packets(io.BytesIO(data)))) == 1
    assert list(packets(io.BytesIO(data.replace(nanoseconds, seconds)))) == []


def interface(link_type: int, resolution: int, offset_s: int) -> bytes:
    """Make the block of an interface whose times count from `offset_s`."""
    options = b"\x09\0\x01\0" + bytes([resolution, 0, 0, 0])
    options += b"\x0e\0\x08\0" + offset_s.to_bytes(8, "little", signed=True) + bytes(4)
    size = (20 + len(options)).to_bytes(4, "little")
    return b"\1\0\0\0" + size + link_type.to_bytes(2, "little") + bytes(6) + options + size


@pytest.mark.parametrize("sort", TIMES)
def test_times_count_from_where_the_interface_says_and_are_exact(sort: str, tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    from capture.formats.pcap import read
    from capture.formats.source import Source

    resolution, offset_s, ticks, ts_ns = TIMES[sort]
    data = pcapng.encode(row(1, STAMPED[0]))
    path = tmp_path / "times.pcapng"
    path.write_bytes(
        pcapng.head()
        + interface(LINKTYPE_USER0, resolution, offset_s)
        + pcapng.packet(0, ticks, data, False)
        + interface(227, resolution, offset_s)
        + pcapng.packet(1, ticks, bytes(16), False)
    )
    with path.open("rb") as file:
        assert [one.ts_ns for one in packets(file)] == [ts_ns][: ts_ns is not None]
    with Source(path) as source:
        found = [
            time
            for item in read(source, {})
            for time in ([one.ts_ns for one in item] if isinstance(item, list) else item.ts_ns.tolist())
        ]
    assert found == [ts_ns, ts_ns][: 2 * (ts_ns is not None)]
