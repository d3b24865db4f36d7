"""The ends of certificates in PEM, read without OpenSSL, which costs a gateway 6 MiB (RFC 5280). Pure."""

import binascii
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----")
_MOST: Final = 512
_SEQUENCE, _VERSION, _UTC_TIME, _TIME = 0x30, 0xA0, 0x17, 0x18
_Element = tuple[int, bytes, bytes]


def end_of_chain_s(pem: bytes) -> float | None:
    """Return when the own certificate of a gateway ends, the first in its file, in s since 1970; or None."""
    return next(ends_s(pem), None)


def end_of_trust_s(pem: bytes) -> float | None:
    """Return when the last of some authorities ends, in s since 1970, or None: a successor replaces one."""
    return max((end for end in ends_s(pem) if end is not None), default=None)


def ends_s(pem: bytes) -> Iterator[float | None]:
    """Yield the end of each certificate, of at most 512, in s since 1970; None for one that is no DER."""
    for number, found in enumerate(_PEM.finditer(pem)):
        if number == _MOST:
            return
        try:
            yield _end_s(binascii.a2b_base64(found[1]))
        except (ValueError, IndexError, OverflowError):
            yield None


def _end_s(der: bytes) -> float:
    _, certificate, _ = _element(der)
    _, signed, _ = _element(certificate)
    kind, _, rest = _element(signed)
    skipped = 3 if kind == _VERSION else 2  # serial number, algorithm, issuer
    for _ in range(skipped):
        _, _, rest = _element(rest)
    kind, validity, _ = _element(rest)
    if kind != _SEQUENCE:
        raise ValueError("no validity")
    _, _, rest = _element(validity)
    kind, text, _ = _element(rest)
    return _time_s(kind, text.decode("ascii"))


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
