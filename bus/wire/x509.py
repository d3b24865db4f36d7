"""The times of certificates in PEM, read without OpenSSL, which costs a gateway 6 MiB (RFC 5280). Pure."""

import binascii
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----")
_MOST: Final = 512
_SEQUENCE, _VERSION, _UTC_TIME, _TIME = 0x30, 0xA0, 0x17, 0x18
_Element = tuple[int, bytes, bytes]


class Span(NamedTuple):
    """The time in which a certificate is valid, in s since 1970."""

    begin_s: float
    end_s: float


def span_of_chain(pem: bytes) -> Span | None:
    """Return the time of the own certificate of a gateway, the first in its file; or None."""
    return next(spans(pem), None)


def span_of_trust(pem: bytes) -> Span | None:
    """Return the time from the first to the last of some authorities, or None: a successor replaces one."""
    found = [span for span in spans(pem) if span is not None]
    return Span(min(one.begin_s for one in found), max(one.end_s for one in found)) if found else None


def spans(pem: bytes) -> Iterator[Span | None]:
    """Yield the time of each certificate, of at most 512; None for one that is no DER."""
    for number, found in enumerate(_PEM.finditer(pem)):
        if number == _MOST:
            return
        try:
            yield _span(binascii.a2b_base64(found[1]))
        except (ValueError, IndexError, OverflowError):
            yield None


def _span(der: bytes) -> Span:
    _, certificate, _ = _element(der)
    _, signed, _ = _element(certificate)
    kind, _, rest = _element(signed)
    skipped = 3 if kind == _VERSION else 2  # serial number, algorithm, issuer
    for _ in range(skipped):
        _, _, rest = _element(rest)
    kind, validity, _ = _element(rest)
    if kind != _SEQUENCE:
        raise ValueError("no validity")
    kind, begin, rest = _element(validity)
    last, end, _ = _element(rest)
    return Span(_time_s(kind, begin.decode("ascii")), _time_s(last, end.decode("ascii")))


def _element(der: bytes) -> _Element:
    """Return the kind and content of the first element, and the rest. Raises ValueError, IndexError."""
    kind, size, at = der[0], der[1], 2
    if size & 0x80:
        at = 2 + (size & 0x7F)
        size = int.from_bytes(der[2:at])
    if at > 6 or at + size > len(der):
        raise ValueError("cut off")
    return kind, der[at : at + size], der[at + size :]


def _time_s(kind: int, text: str) -> float:
    """Return a time of a certificate. Two digits of a year from 50 on are of the last century."""
    if kind == _UTC_TIME:
        text = f"{'19' if int(text[:2]) >= 50 else '20'}{text}"
    elif kind != _TIME:
        raise ValueError("no time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
