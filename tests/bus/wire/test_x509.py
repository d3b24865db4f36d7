"""The times of certificates, beside the library that makes them, and for bytes that are none."""

import base64
import random
from datetime import UTC, datetime

import pytest

from appliance.certificates.making import authority
from bus.wire.x509 import Span, span_of_chain, span_of_trust, spans


def made(year: int) -> bytes:
    return authority("plant", datetime(year - 10, 3, 1, 12, tzinfo=UTC), 3650).pem()


@pytest.mark.parametrize("year", [2030, 2049, 2050, 2051, 2120])
def test_the_time_is_that_of_the_library(year: int) -> None:
    from cryptography.x509 import load_pem_x509_certificate

    pem = made(year)
    read = load_pem_x509_certificate(pem)
    wanted = Span(read.not_valid_before_utc.timestamp(), read.not_valid_after_utc.timestamp())
    assert span_of_chain(pem) == wanted


def der(kind: int, *parts: bytes) -> bytes:
    """Return an element of DER, of less than 128 bytes."""
    content = b"".join(parts)
    return bytes((kind, len(content))) + content


@pytest.mark.parametrize("version", [b"", der(0xA0, der(2, b"\2"))])
def test_a_certificate_of_the_first_version_says_none(version: bytes) -> None:
    validity = der(0x30, der(0x17, b"200101000000Z"), der(0x17, b"300101000000Z"))
    signed = der(0x30, version, der(2, b"\1"), der(0x30), der(0x30), validity, der(0x30))
    encoded = base64.b64encode(der(0x30, signed))
    pem = b"-----BEGIN CERTIFICATE-----\n" + encoded + b"\n-----END CERTIFICATE-----\n"
    times = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (2020, 2030))
    assert span_of_chain(pem) == Span(*times)


def test_an_own_file_ends_with_its_first_and_trust_with_its_last() -> None:
    early, late = made(2030), made(2040)
    both = early + late
    first, last = span_of_chain(early), span_of_chain(late)
    assert first is not None
    assert last is not None
    assert span_of_chain(both) == first
    assert span_of_trust(both) == span_of_trust(late + early) == Span(first.begin_s, last.end_s)
    assert span_of_chain(b"") is span_of_trust(b"") is None


def test_bytes_of_any_kind_never_raise() -> None:
    rng, whole = random.Random(1), base64.b64decode(b"".join(made(2030).splitlines()[1:-1]))
    for cut in range(0, len(whole), 7):
        bad = bytearray(whole[:cut])
        for _ in range(min(cut, 3)):
            bad[rng.randrange(cut)] = rng.randrange(256)
        head, tail = b"-----BEGIN CERTIFICATE-----\n", b"\n-----END CERTIFICATE-----\n"
        assert len(list(spans(head + base64.b64encode(bytes(bad)) + tail))) == 1
