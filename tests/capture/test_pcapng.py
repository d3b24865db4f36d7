"""pcapng, written and read back."""

import io

from capture.pcapng import Writer, packets
from capture.schema import Kind
from tests.capture.capture_support import STAMPED, row


def test_pcapng_of_any_byte_order_and_with_a_torn_tail() -> None:
    writer = Writer()
    rows = [row(n, message) for n, message in enumerate([*STAMPED, b"", b"x"])]
    data = writer.head() + b"".join(map(writer.blocks, rows))
    assert list(packets(io.BytesIO(data))) == rows
    for cut in (1, 5, 30):
        assert list(packets(io.BytesIO(data[:-cut]))) == rows[:-1]


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
