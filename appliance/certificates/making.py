"""Making certificates: an authority, a gateway's, and one with other dates. Imports `cryptography`."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.certificates.hosts import general
from appliance.certificates.telling import is_authority
from bus.errors import BusError

# Others, as Ed25519, hash themselves.
_HASHED = (
    ec.EllipticCurvePrivateKey,
    rsa.RSAPrivateKey,
    dsa.DSAPrivateKey,
)
_EARLIER = timedelta(hours=1)  # for clocks that are a little behind


class Made(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes

    def pem(self) -> bytes:
        """Return the certificate in PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self) -> bytes:
        """Return the key in PEM, PKCS #8, not encrypted."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def authority(name: str, now: datetime, days: int) -> Made:
    """Make an authority that signs its own certificate and those of gateways, with a new key on P-256."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _begun(_named(name), key.public_key(), now, now + timedelta(days=days))
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    builder = builder.add_extension(x509.BasicConstraints(True, 0), True).add_extension(usage, True)
    return Made(_sign(builder.issuer_name(_named(name)), key), key)


def gateway(name: str, hosts: Sequence[str], by: Made, now: datetime, days: int) -> Made:
    """Make a certificate for both ends of a connection. Peers look for the address they dial in `hosts`."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _begun(_named(name), key.public_key(), now, _end(by, now, days))
    usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
    both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    found = x509.SubjectAlternativeName([general(host) for host in hosts])
    builder = builder.add_extension(x509.BasicConstraints(False, None), True).add_extension(usage, True)
    builder = builder.add_extension(both, False).add_extension(found, False)
    return Made(_signed(builder, by), key)


def days_of(old: Made) -> int:
    """Return how many whole days a certificate was made for, 1 or more."""
    lasted = old.certificate.not_valid_after_utc - old.certificate.not_valid_before_utc
    return max(1, lasted.days)


def renewed(old: Made, by: Made, now: datetime, days: int) -> Made:
    """Make a certificate again with new dates: the same names, use and key. `by` is its authority, or itself.

    Raises `BusError` for another authority.
    """
    was = old.certificate
    try:
        was.verify_directly_issued_by(by.certificate)
    except Exception as error:
        raise BusError(f"another authority signed it: {was.issuer.rfc4514_string()}") from error
    itself = was.subject == was.issuer and was.public_key() == by.certificate.public_key()
    end = now + timedelta(days=days) if itself else _end(by, now, days)
    builder = _begun(was.subject, was.public_key(), now, end)
    made_anew = (x509.SubjectKeyIdentifier, x509.AuthorityKeyIdentifier)
    for one in was.extensions:
        if not isinstance(one.value, made_anew):
            builder = builder.add_extension(one.value, one.critical)
    if itself:
        return Made(_sign(builder.issuer_name(was.subject), old.key), old.key)
    return Made(_signed(builder, by), old.key)


def _begun(subject: x509.Name, key: object, now: datetime, end: datetime) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).public_key(key)  # type: ignore[arg-type]
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _EARLIER).not_valid_after(end)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)  # type: ignore[arg-type]


def _end(by: Made, now: datetime, days: int) -> datetime:
    """Return the end of a certificate: the authority's, if that one was given as many days a moment ago.

    Raises `BusError` if the authority ends a day or more before.
    """
    end, last = now + timedelta(days=days), by.certificate.not_valid_after_utc
    if end - last >= timedelta(days=1):
        text = f"the authority ends on {last:%Y-%m-%d}, before that"
        raise BusError(f"{text}: renew it first, or choose fewer --days")
    return min(end, last)


def _signed(builder: x509.CertificateBuilder, by: Made) -> x509.Certificate:
    """Sign by an authority. Raises `BusError` if it is none."""
    if not is_authority(by.certificate):
        raise BusError("its certificate is no authority's: make one with `buscoupler cert new`")
    public = by.certificate.public_key()
    named = x509.AuthorityKeyIdentifier.from_issuer_public_key(public)  # type: ignore[arg-type]
    made = builder.add_extension(named, False).issuer_name(by.certificate.subject)
    return _sign(made, by.key)


def _sign(builder: x509.CertificateBuilder, key: CertificateIssuerPrivateKeyTypes) -> x509.Certificate:
    """Sign as the kind of a key wants it. Raises `BusError` for a key that cannot sign."""
    try:
        return builder.sign(key, hashes.SHA256() if isinstance(key, _HASHED) else None)
    except (TypeError, ValueError) as error:
        raise BusError(f"the key of the authority cannot sign: {error}") from error


def _named(name: str) -> x509.Name:
    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    except ValueError as error:
        raise BusError(f"{name!r}: the name of a certificate has 1 to 64 characters") from error
