"""The SHA-256 without OpenSSL is that of hashlib."""

from hashlib import sha256

import pytest

from bus.machine.digest import sha256_of


@pytest.mark.parametrize("data", [b"", b"abc", bytes(100_000)])
def test_it_is_the_digest_of_hashlib(data: bytes) -> None:
    assert sha256_of(data) == sha256(data).hexdigest()
