"""What input looks like: each protocol is known by its own input, and by no other's."""

import json
import random

import pytest

from bridges.media.guess import of_bytes
from bridges.media.likeness import likeness, likeness_of_datagram
from bridges.media.uart.codec import encode
from bus.wire.frame import pack
from tests.bridges.protocols.blocks_support import CHARGER, METER, MONITOR, block, telegram, unsummed

GGA = b"$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47\r\n"
INPUTS: dict[str, list[bytes]] = {
    "tmq": [encode(pack(1, (1, 2), b"x"))],
    "nmea": [b"00,M,,*47\r\n", GGA, GGA[:20]],
    "vedirect": [block(CHARGER)[60:], block(MONITOR), block(CHARGER)[:30]],
    "p1": [telegram()[180:], telegram()[:60]],
    "jsonl": [b'p": 1}\n{"temp": 21.5}\n{"temp": 21', b'.6}\n{"temp": 21.7}\n'],
    "lines": [b"emp 21.5\r\ntemp 21.6\r\ntemp 21.7\r\n"],
    "modbus": [bytes.fromhex("010300000002c40b"), bytes.fromhex("010304000a000bda36")[:9]],
    "slip": [b"\xc0\x01\x02\xff\xc0\xc0\x03\x80\x00\xc0\xc0\x07\x90\xc0"],
    "xbee": [b"\x00\x7e\x00\x07\x8b\x01\xff\xfe\x00\x00\x00\x76", b"\x7e\x00\x02\x8a\x06\x6f\x7e\x00"],
    "bytes": [b"\xb5\x62\x01\x07\x02\x00\x80\xfe\x8a\x13" * 4],
    "mavlink": [b"\xfe\x09" + bytes(15), b"\xfe\x01" + bytes(7), b"\xfe\x00" + bytes(6)],
    "": [b"\x00\xf8\x00\x80\xfe" * 60],
}


@pytest.mark.parametrize("protocol", list(INPUTS))
def test_each_is_known_by_its_input(protocol: str) -> None:
    assert of_bytes(INPUTS[protocol]).protocol == protocol


def test_nothing_is_said_of_nothing_and_words_name_what_was_seen() -> None:
    assert of_bytes([]).words == "nothing came"
    assert of_bytes([GGA]).words == "NMEA sentences (GPGGA)"
    assert of_bytes(INPUTS["lines"]).words == 'lines of text ("temp 21.6")'


def test_two_messages_of_mavlink_could_be_chance() -> None:
    assert of_bytes(INPUTS["mavlink"][:2]).protocol == ""


def test_a_sentence_with_a_wrong_checksum_is_only_text() -> None:
    assert of_bytes([GGA.replace(b"*47", b"*48")] * 3).protocol == "lines"


@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"\r"])
def test_sentences_are_known_whatever_ends_their_lines(end: bytes) -> None:
    found = of_bytes([GGA.replace(b"\r\n", end) * 3])
    assert (found.protocol, found.settings) == ("nmea", {})


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_sentences_without_checksums_are_known_and_so_is_what_takes_them(end: bytes) -> None:
    found = of_bytes([(GGA[:-5] + end + b"$SDDPT,1.2,0.5" + end) * 3])
    assert (found.protocol, found.settings) == ("nmea", {"checksum": "optional"})
    assert found.words == "NMEA sentences without checksums (GPGGA, SDDPT)"


@pytest.mark.parametrize("line", [b"$STI,IC,error=4", b"GPGGA,1,2", b"$DATA,1", b"$TEMPS,21.5"])
def test_lines_that_begin_like_sentences_without_checksums_are_lines(line: bytes) -> None:
    assert of_bytes([(line + b"\r\n") * 4]).protocol == "lines"


@pytest.mark.parametrize("odd", [0, 1])
def test_text_with_a_parity_bit_is_known_and_the_end_of_its_lines_too(odd: int) -> None:
    text = b"  12.5 kg\r  12.6 kg\r 112.7 kg\r"
    found = of_bytes([bytes(byte | (byte.bit_count() % 2 ^ odd) << 7 for byte in text)])
    assert (found.protocol, found.settings) == ("lines", {"delimiter": "\r"})
    assert found.line == {"data_bits": 7, "parity": "EO"[odd]}
    assert of_bytes([text]).line == {}
    assert likeness(bytes([text[0] | 0x80]) + text[1:], "lines") == ""


def test_noise_is_nothing_and_never_raises() -> None:
    source = random.Random(5)
    guesses = [of_bytes([source.randbytes(600)]).protocol for _ in range(200)]
    assert guesses.count("") >= 198
    assert of_bytes([b"{" * 5000 + b"\n"] * 3).protocol in ("", "lines")
    assert of_bytes([json.dumps(None).encode()]).protocol == ""


@pytest.mark.parametrize(
    "start",
    [
        b"$DATA",
        b"$GPGGA",
        b"!AIVDM",
        b"{",
        b'"',
        b"\x7e\x00",
        b"\xfe",
        b"\xc0",
        b"\xb5\x62",
        b"\n1-0:1.8.0(",
        b"\nV\t",
    ],
)
def test_the_work_is_linear_whatever_comes(start: bytes) -> None:
    """A line with many commas that is no sentence once took a time that doubled with each of them."""
    for more in (b",", b",1", start, start + b","):
        assert of_bytes([start + more * (2000 // len(more)) + b"\r\n"] * 2).share <= 1
    values = b"".join(b",%d" % number for number in range(60))
    assert likeness(start + values + b"\r\n", "lines") == ""


def test_all_that_is_to_be_set_is_said() -> None:
    text = b"  12.5 kg\r\n  12.6 kg\r\n" * 2
    seven = bytes(byte | byte.bit_count() % 2 << 7 for byte in text)
    assert likeness(seven).endswith("7 bits and even parity: `data_bits: 7, parity: E, protocol: lines`")
    assert likeness(seven, "lines").endswith("7 bits and even parity: `data_bits: 7, parity: E`")
    assert likeness(seven, "jsonl", is_line=False) == ""
    assert likeness(text, "lines") == ""
    assert likeness(INPUTS["tmq"][0], "tmq") == ""
    assert likeness(INPUTS["tmq"][0], "lines").endswith("leave `protocol` out")


def test_of_a_datagram_only_protocols_of_datagrams_are_told_and_nothing_of_a_line() -> None:
    assert likeness_of_datagram(GGA).endswith("`protocol: nmea`")
    assert likeness_of_datagram(block(CHARGER)) == ""
    seven = bytes(byte | byte.bit_count() % 2 << 7 for byte in b"  12.5 kg\r\n  12.6 kg\r\n" * 2)
    assert likeness_of_datagram(seven) == ""


@pytest.mark.parametrize("at", range(0, 90, 5))
def test_a_block_of_victron_is_known_by_a_part_of_it(at: int) -> None:
    part = block(CHARGER)[at : at + 90]
    assert of_bytes([part]).protocol == "vedirect"
    assert likeness(part, "lines").endswith("`protocol: vedirect`")


def test_lines_with_a_tab_are_only_lines() -> None:
    assert of_bytes([b"\r\nTEMP\t21.5\r\nHUM\t40\r\nLUX\t7\r\n"]).protocol == "lines"


def test_a_meter_is_known_by_its_codes_and_what_it_needs_is_said() -> None:
    found = of_bytes([telegram() * 2])
    assert (found.protocol, found.settings) == ("p1", {})
    assert found.words == "telegrams of a meter (1-3:0.2.8, 0-0:1.0.0, 0-0:96.1.1)"
    old = unsummed(METER[:6], "ISk5\\2MT382-1004") + b"\r\n"
    assert likeness(old, "lines").endswith('`protocol: {p1: {checksum: "optional"}}`')
    seven = bytes(byte | byte.bit_count() % 2 << 7 for byte in old[30:])
    assert likeness(seven).endswith(
        'even parity: `data_bits: 7, parity: E, protocol: {p1: {checksum: "optional"}}`'
    )


def test_the_settings_of_a_protocol_are_said_too() -> None:
    assert likeness((GGA[:-5] + b"\r\n") * 3).endswith('`protocol: {nmea: {checksum: "optional"}}`')
    assert likeness(b"temp 21.5\r" * 3).endswith('`protocol: {lines: {delimiter: "\\r"}}`')
    assert likeness(GGA * 3).endswith("`protocol: nmea`")
