"""Endpoints with a protocol: its settings stand behind the question mark, beside those of the medium."""

import pytest

from appliance.probe.endpoint import parse_endpoint
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.medium import Rs485, Uart
from bridges.protocols.jsonl.protocol import JsonLines
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.nmea.protocol import Nmea
from bridges.protocols.p1.protocol import P1
from bridges.protocols.vedirect.protocol import VeDirect
from bus.errors import LinkError


def test_settings_of_medium_and_protocol_in_one_word() -> None:
    settings = "receive=gps/{k}&match=(%3FP<k>x)&send=a/b&delimiter=%0D"
    word = f"uart:/dev/x?baud=9600&data_bits=7&dtr=false&protocol=lines&{settings}"
    found = parse_endpoint(word)
    assert found.medium == Uart(port="/dev/x", baud=9600, data_bits=7, dtr=False)
    assert found.protocol == Lines(receive=("gps", "{k}"), match="(?P<k>x)", send=("a", "b"), delimiter="\r")

    assert parse_endpoint("frames:h:1?protocol=nmea").medium == Tcp(host="h", port=1)
    assert parse_endpoint("frames:h:1?protocol=jsonl&split=yes").protocol == JsonLines(split=True)
    pair = parse_endpoint("rs485:/dev/x?protocol=nmea&root=gps")
    assert (pair.medium, pair.protocol) == (Uart(port="/dev/x", rs485=Rs485()), Nmea(root=("gps",)))


@pytest.mark.parametrize(
    ("word", "delimiter"),
    [(r"\r", "\r"), (r'"\r\n"', "\r\n"), (r"\x0d\x03", "\r\x03"), (r"\\n", r"\n"), (";", ";"), ('"', '"')],
)
def test_a_delimiter_is_written_as_in_a_file(word: str, delimiter: str) -> None:
    found = parse_endpoint(f"uart:/dev/ttyS9?protocol=lines&receive=gps&delimiter={word}").protocol
    assert found == Lines(receive=("gps",), delimiter=delimiter)


def test_lists_of_a_protocol_are_taken_as_they_are_written() -> None:
    """A code of a meter was once taken for HOST:PORT."""
    found = parse_endpoint("uart:/dev/x?protocol=p1&receive=1-0:1.8.1,1.7.0,0-1/24.2.1").protocol
    assert found == P1(receive=("1-0:1.8.1", "1.7.0", "0-1/24.2.1"))
    found = parse_endpoint("uart:/dev/x?protocol=vedirect&receive=V,SER%23").protocol
    assert found == VeDirect(receive=("V", "SER#"))


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("uart:/dev/x?data_bits=7", "TMQ needs 8 data bits"),
        ("uart:/dev/x?xonxoff=yes", "hold the bytes of xonxoff"),
        ("rs485:/dev/x", "nodes is missing"),
        ("rs485:/dev/x?nodes=1&protocol=lines", "leave nodes out"),
        ("uart:/dev/x?protocol=jsonl&members=a", "members is a mapping: write it in a topology"),
        ("uart:/dev/x?protocol=lines&receive={k}", "there is no match"),
        ("uart:/dev/x?protocol=lines&encoding=latin", "encoding"),
        ("uart:/dev/x?protocol=p1&receive=power", 'receive: "power" is no OBIS code'),
        ("uart:/dev/x?protocol=nmae", "did you mean nmea|nmea"),
        ("uart:/dev/x?protocol=modbus", "modbus needs registers, a table: write it into a topology"),
        ("frames:h:1?protocol=modbus&registers=5", "modbus needs registers, a table"),
        ("i2c:1?protocol=registers", "registers needs registers, a table"),
        ("i2c:1", "targets is missing"),
        ("can:can0?protocol=lines", "does not carry the protocol lines"),
    ],
)
def test_what_is_wrong_is_said_with_the_word(word: str, words: str) -> None:
    with pytest.raises(LinkError, match=words) as caught:
        parse_endpoint(word)
    assert str(caught.value).startswith(word)
