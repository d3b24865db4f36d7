"""The words about a certificate: its names, its authority, and how long it lasts."""

from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from bus.machine.lasting import WARN_S


def record(found: x509.Certificate, now: datetime) -> dict[str, Any]:
    """Return a certificate as JSON has it. `days_left` is below 0 for one that has ended."""
    left_s = (found.not_valid_after_utc - now).total_seconds()
    return {
        "name": _common(found.subject),
        "hosts": _hosts(found),
        "authority": is_authority(found),
        "issuer": _common(found.issuer),
        "begins": found.not_valid_before_utc.isoformat(),
        "ends": found.not_valid_after_utc.isoformat(),
        "days_left": int(left_s // 86400),
        "state": _state(left_s, found.not_valid_before_utc > now),
        "sha256": found.fingerprint(hashes.SHA256()).hex(),
    }


def _state(left_s: float, is_early: bool) -> str:
    if is_early:
        return "not yet valid"
    return "ended" if left_s <= 0 else "ends soon" if left_s < WARN_S else "valid"


def line(file: str, row: dict[str, Any]) -> str:
    """Return a record as a line."""
    what = (
        "authority" if row["authority"] else f"of {row['issuer']}, for {', '.join(row['hosts']) or 'no host'}"
    )
    left = f"{row['days_left']} days left" if row["state"] != "ended" else "ENDED"
    left = f"BEGINS {row['begins'][:10]}" if row["state"] == "not yet valid" else left
    return f"{file}: {row['name']}: {what}; ends {row['ends'][:10]}: {left}"


def _common(name: x509.Name) -> str:
    found = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(found[0].value) if found else name.rfc4514_string()


def _hosts(found: x509.Certificate) -> list[str]:
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return [str(one.value) for one in names]


def is_authority(found: x509.Certificate) -> bool:
    """Return whether a certificate is that of an authority."""
    try:
        return bool(found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
    except (x509.ExtensionNotFound, ValueError):
        return False
