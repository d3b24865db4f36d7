"""pcapng, written and read back."""

import io

from capture.pcapng import Writer, packets
from tests.capture.capture_support import STAMPED, row


def test_pcapng_of_any_byte_order_and_with_a_torn_tail() -> None:
    writer = Writer()
    rows = [row(n, message) for n, message in enumerate([*STAMPED, b"", b"x"])]
    data = writer.head() + b"".join(map(writer.blocks, rows))
    assert list(packets(io.BytesIO(data))) == rows
    for cut in (1, 5, 30):
        assert list(packets(io.BytesIO(data[:-cut]))) == rows[:-1]
