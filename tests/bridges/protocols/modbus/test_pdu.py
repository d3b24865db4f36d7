"""Requests of Modbus as the standard has them, and answers of another length."""

import pytest

from bridges.protocols.modbus.pdu import Ask, outcome_of, reading, writing


@pytest.mark.parametrize(
    ("ask", "pdu", "data_bytes"),
    [
        (reading(1, "coil", 0x13, 0x13), "0100130013", 3),
        (reading(1, "discrete", 0xC4, 0x16), "0200c40016", 3),
        (reading(1, "holding", 0x6B, 3), "03006b0003", 6),
        (reading(1, "input", 8, 1), "0400080001", 2),
        (writing(1, "coil", 0xAC, b"\1"), "0500acff00", 0),
        (writing(1, "coil", 0xAC, b"\0"), "0500ac0000", 0),
        (writing(1, "holding", 1, b"\0\3"), "0600010003", 0),
        (writing(1, "holding", 1, b"\0\3", many=True), "1000010001020003", 0),
        (writing(1, "holding", 1, b"\0\x0a\1\2"), "100001000204000a0102", 0),
    ],
)
def test_a_request_is_that_of_the_standard(ask: Ask, pdu: str, data_bytes: int) -> None:
    assert (ask.pdu.hex(), ask.data_bytes) == (pdu, data_bytes)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (b"\3\4\1\2\3\4", ""),
        (b"\3\2\x09\x09", "short answer"),
        (b"\3\6\0\0\0\0\0\0", "long answer"),
        (b"\3\4\1\2\3", "malformed"),
        (b"\3", "malformed"),
        (b"\3\4\1\2\3\4\5", "extra bytes"),
        (b"\4\4\1\2\3\4", "other answer"),
    ],
)
def test_an_answer_has_as_many_bytes_as_were_asked_for(answer: bytes, fault: str) -> None:
    outcome = outcome_of(reading(1, "holding", 0, 2), answer)
    assert (outcome.fault, outcome.data) == (fault, b"" if fault else answer[2:])
