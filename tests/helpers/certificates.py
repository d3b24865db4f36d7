"""Certificates for tests: an authority, and one for this machine that it signed."""

from pathlib import Path

import trustme

from bus.transports.options import Tls


def own_tls(folder: Path) -> Tls:
    """Return settings that serve who listens on loopback and who dials there."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    own = authority.issue_cert("127.0.0.1", "localhost")
    own.private_key_and_cert_chain_pem.write_to_path(str(folder / "own.pem"))
    return Tls(str(folder / "ca.pem"), str(folder / "own.pem"))
