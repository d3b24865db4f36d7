"""Sentences of NMEA 0183: verified, told apart, never joined of two, written with a checksum."""

from typing import Any

import pynmea2
import pytest

from bridges.protocols.nmea.protocol import Nmea
from bridges.protocols.nmea.sentences import checksum
from tests.bridges.protocols.spoken_support import fed, message, told, translator

GGA = b"$GPGGA,092750.000,5321.6802,N,00630.3372,W,1,8,1.03,61.7,M,55.2,M,,*76"
RMC = b"$GPRMC,092751.000,A,5321.6802,N,00630.3371,W,0.06,31.66,280511,,,A*45"
AIS = b"!AIVDM,1,1,,B,177KQJ5000G?tO`K>RA1wUbN0TKH,0*5C"
NAMES = ("gps", "GP", "GGA", "RMC", "AI", "VDM", "P", "UBX", "TXT")


def sentence(body: bytes, start: bytes = b"$") -> bytes:
    return b"%b%b*%02X" % (start, body, checksum(body))


def heard(data: bytes, **settings: Any) -> tuple[list[tuple[str, bytes]], dict[str, int]]:
    made = translator(Nmea(root=("gps",), **settings))
    return told(fed(made, [data]), *NAMES), made.wire.stats.rejected


def test_talker_and_type_are_tokens_and_the_sentence_is_the_data() -> None:
    own = sentence(b"PUBX,00,123")
    found, rejected = heard(b"\r\n".join((GGA, RMC, AIS, own, b"")))
    assert found == [("gps/GP/GGA", GGA), ("gps/GP/RMC", RMC), ("gps/AI/VDM", AIS), ("gps/P/UBX", own)]
    assert not rejected


@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"\r", b"\r\r\n"])
def test_every_line_end_that_is_met_in_the_field(end: bytes) -> None:
    assert heard(end + GGA + end + RMC + end) == ([("gps/GP/GGA", GGA), ("gps/GP/RMC", RMC)], {})


@pytest.mark.parametrize("at", range(1, len(GGA)))
def test_a_sentence_that_another_cuts_is_rejected_and_the_other_passes(at: int) -> None:
    assert heard(GGA[:at] + RMC + b"\r\n") == ([("gps/GP/RMC", RMC)], {"cut": 1})


def test_a_checksum_that_fits_the_whole_of_two_cut_sentences_by_chance_changes_nothing() -> None:
    joined = b"GPGGA,12$GPRMC,3"
    found, rejected = heard(sentence(joined) + b"\r\n")
    assert found == []
    assert rejected == {"cut": 1, "checksum": 1}
    text = sentence(b"GPTXT,01,01,02,Hello! All well")
    assert heard(text + b"\n")[0] == [("gps/GP/TXT", text)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (GGA[:-2] + b"77", "checksum"),
        (GGA[:-3], "no checksum"),
        (GGA + b"x", "malformed"),
        (GGA[:-1], "malformed"),
        (sentence(b"GPGGA,1*23"), "malformed"),
        (sentence(b"GPGGA,\x01"), "malformed"),
        (sentence(b"GPGGA,\xb0"), "malformed"),
        (sentence(b"gpgga,1"), "malformed"),
        (sentence(b"GPGG,1"), "address"),
        (sentence(b"GPGGAX,1"), "address"),
        (b"hello", "no sentence"),
        (sentence(b"GPTXT," + b"x" * 1100), "oversize"),
    ],
)
def test_what_is_no_sentence_is_counted_by_reason(line: bytes, reason: str) -> None:
    made = translator(Nmea())
    assert len(fed(made, [line + b"\r\n" + GGA + b"\r\n"])) == 1
    assert made.wire.stats.rejected == {reason: 1}
    assert made.take_counts() == (1, len(line))


def test_one_without_a_checksum_passes_if_that_is_asked_for_and_a_wrong_one_never() -> None:
    found, rejected = heard(GGA[:-3] + b"\n" + GGA[:-1] + b"7\n", checksum="optional")
    assert found == [("gps/GP/GGA", GGA[:-3])]
    assert rejected == {"checksum": 1}


def test_the_length_of_the_standard_can_be_asked_for() -> None:
    fits, longer = sentence(b"GPTXT," + b"x" * 70), sentence(b"GPTXT," + b"x" * 71)
    assert len(fits) + 2 == 82
    assert [len(heard(one + b"\r\n", longest_bytes=82)[0]) for one in (fits, longer)] == [1, 0]


def test_a_tag_block_in_front_is_none_of_the_sentence_and_other_noise_is_counted() -> None:
    assert heard(b"\\s:r003669945,c:1120959341*08\\" + AIS + b"\r\n") == ([("gps/AI/VDM", AIS)], {})
    assert heard(b"\xff\x00garbage" + AIS + b"\r\n") == ([("gps/AI/VDM", AIS)], {"no sentence": 1})


def test_values_of_a_sentence_follow_it_under_its_pattern() -> None:
    made = translator(Nmea(root=("gps",), values=True))
    names = (*NAMES, "lat", "lon", "status", "speed", "course")
    assert told(fed(made, [RMC + b"\r\n" + AIS + b"\r\n"]), *names) == [
        ("gps/GP/RMC", RMC), ("gps/GP/RMC/status", b"A"), ("gps/GP/RMC/lat", b"53.361337"),
        ("gps/GP/RMC/lon", b"-6.505618"), ("gps/GP/RMC/speed", b"0.06"), ("gps/GP/RMC/course", b"31.66"),
        ("gps/AI/VDM", AIS),
    ]  # fmt: skip
    assert not made.wire.stats.rejected


def test_values_as_json_have_unit_and_time_and_numbers_leave_text_out() -> None:
    made = translator(Nmea(values=True, form="json"), unix_s=lambda now_s: 1000 + now_s)
    _, status, lat, *_ = (data for _, data in told(fed(made, [RMC + b"\n"], 0.5)))
    assert status == b'{"v":"A","unit":"","t":1000.5}'
    assert lat == b'{"v":53.361337,"unit":"deg","t":1000.5}'
    found = fed(translator(Nmea(values=True, form="number")), [RMC + b"\n"])
    assert [len(data) for _, data in told(found)] == [len(RMC), 8, 8, 8, 8]


def test_a_field_that_would_not_fit_into_a_frame_as_json_is_no_value() -> None:
    longest = sentence(b"IIMTW," + b'"' * 2000 + b",C")
    made = translator(Nmea(values=True, form="json", longest_bytes=2048))
    assert [data for _, data in told(made.take([longest + b"\n"], 0))] == [longest]
    assert made.condition == ""


def test_the_page_and_metrics_know_the_units_of_any_talker() -> None:
    known = {one.pattern: one for one in Nmea(root=("gps",), values=True).quantities()}
    speed = known["gps", "GP", "RMC", "speed"]
    assert (speed.unit, speed.any_at) == ("kn", 1)
    assert not list(Nmea().quantities())


def test_a_form_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="form is of values: add values: true"):
        Nmea(form="json")


def test_what_leaves_has_a_checksum_and_pynmea2_reads_it() -> None:
    made = translator(Nmea(send=("out",)))
    for data in (GGA, GGA[:-3], GGA[1:-3], AIS, AIS[1:-3], b"PMTK220,1000"):
        (line,) = made.send(message("out", data), 0).items
        assert line.endswith(b"\r\n")
        assert line[:1] == (b"!" if data in AIS else b"$")
        if data not in AIS:
            pynmea2.parse(line.decode().strip(), check=True)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (GGA + b"\r\n", "line end inside"),
        (GGA + b"\n$GPXXX,1", "line end inside"),
        (GGA[:-1] + b"0", "checksum"),
        (b"", "malformed"),
        (b"GPGGA,$", "malformed"),
        (b"GPTXT," + b"x" * 1100, "oversize"),
    ],
)
def test_what_is_no_sentence_does_not_leave(data: bytes, why: str) -> None:
    assert translator(Nmea(send=("out",))).send(message("out", data), 0).why == why
    assert translator(Nmea()).send(message("out", GGA), 0).why == "not sent here"


def test_pynmea2_and_we_agree_on_every_sentence_that_it_makes() -> None:
    fields = "184353.07,1929.045,S,02410.506,E,1,04,2.6,1,M,,M,,"
    made = [
        pynmea2.GGA("GN", "GGA", tuple(fields.split(","))),
        pynmea2.ZDA("GP", "ZDA", ("201530.00", "04", "07", "2002", "00", "00")),
        pynmea2.HDT("HE", "HDT", ("123.4", "T")),
    ]
    found, rejected = heard("".join(f"{one}\r\n" for one in made).encode())
    assert [data.decode() for _, data in found] == list(map(str, made))
    assert not rejected
