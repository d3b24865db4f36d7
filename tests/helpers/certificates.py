"""Certificates for tests: an authority, and one for this machine that it signed."""

from dataclasses import replace
from pathlib import Path

import trustme

from bus.transports.options import Tls


def named_tls(folder: Path, *names: str) -> list[Tls]:
    """Return settings of a listener that asks for certificates, and then of peers with these common names."""
    authority, served = trustme.CA(), own_tls(folder)
    authority.cert_pem.write_to_path(str(folder / "peers.pem"))
    made = [replace(served, ca_file=str(folder / "peers.pem"), require_peer_cert=True)]
    for name in names:
        own = authority.issue_cert(common_name=name)
        own.private_key_and_cert_chain_pem.write_to_path(str(folder / f"{name}.pem"))
        made.append(replace(served, cert_file=str(folder / f"{name}.pem")))
    return made


def own_tls(folder: Path) -> Tls:
    """Return settings that serve who listens on loopback and who dials there."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    own = authority.issue_cert("127.0.0.1", "localhost")
    own.private_key_and_cert_chain_pem.write_to_path(str(folder / "own.pem"))
    return Tls(str(folder / "ca.pem"), str(folder / "own.pem"))
