"""The hosts in a certificate: addresses and names, as peers look for them. Imports `cryptography`."""

import re
from ipaddress import ip_address
from typing import Final

from cryptography import x509

from bus.errors import BusError

_NAME: Final = re.compile(r"(?=.{1,253}\Z)(\*\.)?([\w-]{1,63}\.)*(?!\d+\Z)[\w-]{1,63}", re.ASCII)
"""A name of a host, perhaps with `*` as its first part. It does not end with a number, as addresses do."""
_WRAPPED: Final = re.compile(
    r"\s*([\w+.-]+://)?([^@/]*@)?(\[(?P<address>[^]]*)\]|(?P<host>[^\s:/]*?)\.?)(:\d*)?(/.*)?\s*", re.ASCII
)
"""A host in a URL, with a port, or with a length of a prefix."""


def general(host: str) -> x509.GeneralName:
    """Return a host as a certificate has it. Raises `BusError` with the host that was meant, for a URL."""
    if (found := _known(host)) is not None:
        return found
    inner = _WRAPPED.fullmatch(host)
    meant = "" if inner is None else inner["address"] or inner["host"] or ""
    hint = f": do you mean {meant}?" if _known(meant) is not None else ""
    raise BusError(f"--host {host!r} is no IP address and no name of a host in ASCII{hint}")


def _known(host: str) -> x509.GeneralName | None:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host) if _NAME.fullmatch(host) else None
