"""The keys that gateways share: their files, and signing with them (docs/security.md).

A key file is one line of text, `buscoupler-key 1 ` and 32 random bytes in hexadecimal digits. A `Keyring`
holds several keys, so that they can be changed one gateway at a time: the first signs, all verify.
"""

import os
from collections.abc import Iterable, Sequence

from bus.errors import LinkError, why_of
from bus.machine.files import NoText, read_bytes, text_of, write_new
from bus.machine.touch import touching

SECRET_BYTES = 32
TAG_BYTES = 8
_HEAD = "buscoupler-key 1 "
_FILE_BYTES_MAX = 4096
_OTHERS = 0o007
_MAKE = "make one with `buscoupler key new FILE`"


def new_key(path: str) -> str:
    """Write a new key to a new file that only its owner can read.

    Return the key's name. Raises `LinkError`.
    """
    secret = os.urandom(SECRET_BYTES)
    try:
        write_new(path, f"{_HEAD}{secret.hex()}\n".encode())
    except FileExistsError:
        raise LinkError(f"{path} is there already, and is left as it is: choose another name") from None
    except OSError as error:
        raise LinkError(f"{path}: cannot write the key: {why_of(error)}") from error
    return name_of(secret)


def name_of(secret: bytes) -> str:
    """Return the 8 hexadecimal digits by which a key is known, which do not reveal it."""
    return tag(secret, b"buscoupler name of a key")[:4].hex()


def read_key(path: str) -> bytes:
    """Return the key in a file. Raises `LinkError` if there is none, or if every user may read the file."""
    try:
        with touching(path):
            mode, data = os.stat(path).st_mode, read_bytes(path, _FILE_BYTES_MAX)
    except FileNotFoundError as error:
        raise LinkError(f"{path}: cannot read the key: {error.strerror}: {_MAKE}") from error
    except OSError as error:
        raise LinkError(f"{path}: cannot read the key: {why_of(error)}") from error
    except ValueError:
        mode, data = 0, b""
    if mode & _OTHERS:
        raise LinkError(f"{path}: every user may read this key: chmod o= {path}")
    return _secret(path, data)


def _secret(path: str, data: bytes) -> bytes:
    try:
        line = text_of(data).strip()
        secret = bytes.fromhex(line.removeprefix(_HEAD)) if line.startswith(_HEAD) else b""
    except NoText as error:
        raise LinkError(f"{path}: this is no key: {error}") from None
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise LinkError(f"{path}: this is no key: {_MAKE}")
    return secret


def tag(secret: bytes, *parts: bytes) -> bytes:
    """Return HMAC-SHA-256 of the concatenated parts, cut to 8 bytes (RFC 2104, section 5)."""
    return _digest(secret, b"".join(parts))[:TAG_BYTES]


def _digest(secret: bytes, data: bytes) -> bytes:
    import hmac  # late: it loads OpenSSL, and many gateways have no keys

    return hmac.digest(secret, data, "sha256")


def ring_of(paths: Sequence[str]) -> "Keyring | None":
    """Return the keys in files as a ring; None for no files.

    Raises `LinkError` for the first unusable file.
    """
    return Keyring(read_key(path) for path in paths) if paths else None


class Keyring:
    """The keys of a link, at least one: the first signs, all verify."""

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._secrets = tuple(secrets)

    def derive(self, *purpose: bytes) -> "Keyring":
        """Return keys for one purpose only: a signature by them is valid nowhere else.

        `purpose` is, for example, a word and the nonces of both ends of a connection.
        """
        words = b"".join(len(part).to_bytes(2, "big") + part for part in purpose)
        return Keyring(_digest(secret, words) for secret in self._secrets)

    def singles(self) -> "tuple[Keyring, ...]":
        """Return each key as a ring of its own, in order."""
        return tuple(Keyring((secret,)) for secret in self._secrets)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the keys (`name_of`), in order."""
        return tuple(name_of(secret) for secret in self._secrets)

    def sign(self, *parts: bytes) -> bytes:
        """Return the tag of the concatenated parts by the first key, 8 bytes."""
        return tag(self._secrets[0], *parts)

    def verify(self, found: bytes, *parts: bytes) -> bool:
        """Tell whether `found` is the tag of the parts by any of the keys, in constant time."""
        from hmac import compare_digest

        return any(compare_digest(tag(secret, *parts), found) for secret in self._secrets)
