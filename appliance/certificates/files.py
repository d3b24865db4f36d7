"""The files of a certificate and its key: read, written whole, and never replaced without a word."""

import os
import re
import stat
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from appliance.certificates.making import Made
from bus.errors import BusError, why_of
from bus.machine.files import PEM_BYTES, read_bytes, replace_bytes, write_new
from bus.wire.pem import CERTIFICATE, KEY, fault

_FIRST = re.compile(
    rb"-----BEGIN (X509 )?CERTIFICATE-----.*?-----END (X509 )?CERTIFICATE-----\r?\n?", re.DOTALL
)


def key_path(file: str) -> str:
    """Return where the key of a certificate is by default: beside it, with the ending .key."""
    return str(Path(file).with_suffix(".key"))


def write(made: Made, file: str, key_file: str) -> None:
    """Write a new certificate (mode 0644) and its key (0600). Raises `BusError` if one of them is there."""
    for path in (file, key_file):
        if os.path.lexists(path):
            text = f"{path} is there already, and is left as it is"
            raise BusError(f"{text}: choose another name, or `buscoupler cert renew` for new dates")
    try:
        write_new(key_file, made.key_pem(), 0o600)
        try:
            write_new(file, made.pem(), 0o644)
        except OSError:
            os.unlink(key_file)
            raise
    except OSError as error:
        raise BusError(f"{file}: cannot write the certificate: {why_of(error)}") from error


def replace(made: Made, file: str) -> None:
    """Write a renewed certificate in place of the first in a file, whose other parts stay.

    The old file is kept as FILE.old. Raises `BusError`.
    """
    try:
        old, data = Path(f"{file}.old"), read_bytes(file, PEM_BYTES)
        old.unlink(missing_ok=True)
        write_new(old, data, stat.S_IMODE(os.stat(file).st_mode))
        replace_bytes(file, _FIRST.sub(lambda _: made.pem(), data, count=1))
    except OSError as error:
        raise BusError(f"{file}: cannot write the certificate: {why_of(error)}") from error


def read(file: str, key_file: str) -> Made:
    """Return a certificate with its key. Raises `BusError`."""
    certificate = read_all(file)[0]
    try:
        key = serialization.load_pem_private_key(_read(key_file, KEY), None)
    except OSError as error:
        raise BusError(f"{key_file}: cannot read the key: {why_of(error)}") from error
    except (ValueError, TypeError) as error:
        raise BusError(f"{key_file}: this is no key in PEM without a password") from error
    if key.public_key() != certificate.public_key():
        raise BusError(f"{key_file} is not the key of {file}")
    return Made(certificate, key)  # type: ignore[arg-type]


def read_all(file: str) -> list[x509.Certificate]:
    """Return the certificates of a file in PEM. Raises `BusError`."""
    try:
        return x509.load_pem_x509_certificates(_read(file, CERTIFICATE))
    except OSError as error:
        raise BusError(f"{file}: cannot read it: {why_of(error)}") from error
    except ValueError as error:
        raise BusError(f"{file}: this is no certificate in PEM") from error


def _read(file: str, holds: str) -> bytes:
    data = read_bytes(file, PEM_BYTES)
    if found := fault(data, holds):
        raise BusError(f"{file} {found}")
    return data
