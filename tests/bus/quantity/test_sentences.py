"""Values in the fields of sentences of NMEA 0183: places in degrees, numbers, text, and what is none."""

from decimal import Decimal

import pynmea2
import pytest

from bus.quantity.sentences import SENTENCES, values

GGA = "GPGGA,092750.000,5321.6802,N,00630.3372,W,1,8,1.03,61.7,M,55.2,M,,"
RMC = "GPRMC,092751.000,A,5321.6802,N,00630.3371,W,0.06,31.66,280511,,,A"


def said(body: str) -> dict[str, Decimal | str]:
    address, *fields = body.split(",")
    return {field.name: value for field, value in values(address[2:], fields)}


def test_a_place_is_in_degrees_and_other_numbers_are_exact() -> None:
    assert said(GGA) == {
        "lat": Decimal("53.361337"), "lon": Decimal("-6.505620"), "quality": 1, "satellites": 8,
        "hdop": Decimal("1.03"), "altitude": Decimal("61.7"), "geoid": Decimal("55.2"),
    }  # fmt: skip


def test_pynmea2_finds_the_same_place_within_the_last_digit_of_a_minute() -> None:
    for body in (
        GGA,
        RMC,
        GGA.replace("5321.6802,N", "0000.0123456,S").replace("00630.3372,W", "17959.9000,E"),
    ):
        theirs, ours = pynmea2.parse(f"${body}"), said(body)
        for name, theirs_deg in (("lat", theirs.latitude), ("lon", theirs.longitude)):
            assert float(ours[name]) == pytest.approx(theirs_deg, abs=1e-6)


def test_units_are_those_of_the_table() -> None:
    units = {field.name: field.unit for field, _ in values("RMC", RMC.split(",")[1:])}
    assert units == {"status": "", "lat": "deg", "lon": "deg", "speed": "kn", "course": "deg"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (RMC.replace(",A,", ",V,", 1), {"status": "V"}),
        ("GPRMC,092751.000,V,,,,,,,280511,,,N", {"status": "V"}),
        (GGA.replace(",W,1,8", ",W,0,8"), {"quality": 0}),
        ("WIMWV,045,R,12.5,N,V", {"status": "V"}),
        ("WIMWV,045,R,12.5,N,A", {"angle": 45, "speed": Decimal("12.5"), "status": "A"}),
        ("SDDPT,3.6", {"depth": Decimal("3.6")}),
        ("SDDPT,.5,-.25", {"depth": Decimal("0.5"), "offset": Decimal("-0.25")}),
        ("SDDPT,12.,.", {"depth": 12, "offset": "."}),
        ("SDDPT,", {}),
        ("SDDPT", {}),
        ("GPTXT,01,01,02,hello", {}),
        ("IIMTW,warm,C", {"temperature": "warm"}),
    ],
)
def test_what_a_device_does_not_know_is_no_value(body: str, expected: dict[str, Decimal | str]) -> None:
    assert said(body) == expected


@pytest.mark.parametrize(
    "place",
    [
        "5361.0,N",
        "9100.0,N",
        "5321.68",
        "5321.68,",
        "5321.68,E",
        "5321.68,n",
        "21.68.0,N",
        "-5321.68,N",
        "1,N",
    ],
)
def test_what_is_no_latitude_is_no_value(place: str) -> None:
    assert "lat" not in said(f"GPGLL,{place}")


def test_the_equator_has_no_sign() -> None:
    assert str(said("GPGLL,0000.0,S,00000.0,W,1,A")["lat"]) == "0.000"


def test_no_two_fields_of_a_sentence_have_one_name_or_place() -> None:
    for fields in SENTENCES.values():
        assert len({field.name for field in fields}) == len({field.place for field in fields}) == len(fields)
