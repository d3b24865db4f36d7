"""Frames of Modbus TCP: what is asked, and lengths that no frame has."""

import pytest

from bridges.protocols.modbus.mbap import HEADER, Mbap
from bridges.protocols.modbus.pdu import PDU_BYTES_MAX, Ask


class Line:
    """A connection, with what it rejects and why nothing that comes can be understood any more."""

    def __init__(self) -> None:
        self.rejected, self.broken = list[str](), list[str]()
        self.mbap = Mbap(lambda reason, _: self.rejected.append(reason), self.broken.append)


def test_requests_have_the_header_of_the_standard_and_numbers_that_go_up() -> None:
    line = Line().mbap
    pdu = bytes.fromhex("03006b0003")
    asked = [line.ask(Ask(0x11, pdu, 6), 0.0, 1.0, 0.0).hex() for _ in range(2)]
    assert asked == ["0001000000061103006b0003", "0002000000061103006b0003"]


@pytest.mark.parametrize(
    ("length", "fault"),
    [(1, "malformed"), (2, ""), (1 + PDU_BYTES_MAX, ""), (2 + PDU_BYTES_MAX, "malformed")],
)
def test_a_length_that_no_frame_has_ends_a_connection(length: int, fault: str) -> None:
    line = Line()
    line.mbap.ask(Ask(1, b"\x03\0\0\0\x01", 2), 0.0, 1.0, 0.0)
    outcome = line.mbap.feed(HEADER.pack(1, 0, length, 1), 0.1)
    assert (outcome.fault if outcome else "") == fault
    assert bool(line.broken) == bool(fault)
