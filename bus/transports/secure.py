"""TLS on a non-blocking socket: an object with the methods of a socket that a `StreamPipe` uses.

OpenSSL reads from memory and writes to it (`ssl.MemoryBIO`), so it never waits for a direction that the pipe
does not expect, and a write that is not done need not be repeated with the same bytes.
"""

import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bus.errors import LinkError, words_of
from bus.machine.files import pem
from bus.machine.late import Late
from bus.machine.touch import touching
from bus.text import SAID_BYTES
from bus.transports.options import Tls
from bus.transports.sockets import CLOSED_BY_PEER
from bus.urls import split_url
from bus.wire.batch import Buffer
from bus.wire.pem import KEY

if TYPE_CHECKING:
    import ssl
else:
    ssl = Late("ssl")

_PIECE_BYTES = 64 * 1024  # encrypted at once: so much may wait for a peer beyond the bound of its queue
SCRATCH_BYTES = 256 * 1024
_DATES = "expired", "not yet valid"


def context(url: str, tls: Tls, listens: bool) -> "ssl.SSLContext":
    """Return the TLS context of all connections of a link. Raises `LinkError` for unusable files."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if listens else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION
    if listens:
        made.num_tickets = 0  # nobody resumes a session, so none is kept
    file = " and ".join(filter(None, (tls.cert_file, tls.key_file)))
    try:
        load_own(made, tls)
        if not listens or tls.require_peer_cert:
            file = tls.ca_file or ""
            load_authority(made, tls)
    except OSError as error:
        raise LinkError(f"{url}: {error.filename or file}: {_words(error)}") from error
    except ValueError as error:
        raise LinkError(f"{url}: {error}") from error
    if listens and not tls.cert_file:
        raise LinkError(f"{url}: a TLS listener needs cert_file")
    return made


def load_own(made: "ssl.SSLContext", tls: Tls) -> None:
    """Load the own certificate of TLS settings, if they name one. Raises `OSError`. It may block."""
    if not tls.cert_file:
        return
    with touching(tls.cert_file):
        key = pem(tls.key_file or tls.cert_file, KEY)
        made.load_cert_chain(pem(tls.cert_file), key, password=lambda: b"")


def load_authority(made: "ssl.SSLContext", tls: Tls) -> None:
    """Require certificates that the authority of TLS settings signed. Raises `OSError`. It may block."""
    made.verify_mode = ssl.CERT_REQUIRED
    if not tls.ca_file:
        return made.load_default_certs()
    with touching(tls.ca_file):
        return made.load_verify_locations(pem(tls.ca_file))


def trusting(ca_file: str | None) -> "ssl.SSLContext":
    """Return the settings of a client that trusts the authorities of a file, by default the system's.

    Raises `OSError`, and ValueError for a file that is no PEM. It may block.
    """
    return ssl.create_default_context(cafile=ca_file and pem(ca_file))


def _words(error: OSError) -> str:
    """Return the text of an error of TLS, without OpenSSL's numbers and files."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return dated(f"TLS: the certificate is refused: {error.verify_message}")
    if isinstance(error, ssl.SSLError) and error.reason is None:
        return "TLS: what it holds cannot be decoded, or needs a password"
    if isinstance(error, ssl.SSLError):
        return dated(f"TLS: {(error.reason or words_of(error)).lower().replace('_', ' ')}")
    return words_of(error)


def dated(words: str) -> str:
    """Return words about a certificate; where its dates are the reason, with the date that is here."""
    if not any(word in words for word in _DATES):
        return words
    return f"{words}; or a clock is wrong: here it is {time.strftime('%Y-%m-%d', time.gmtime())} (UTC)"


class Security:
    """TLS at one end of an address, shared by its connections. Open it first, to make them.

    Making it reads files, and so may block; opening it does not.
    """

    def __init__(self, url: str, tls: Tls, listens: bool) -> None:
        self._listens = listens
        self._name = tls.server_name or split_url(url).host
        self._trouble = ""
        try:
            self._context = context(url, tls, listens)
        except LinkError as error:
            self._trouble = str(error)

    def open(self) -> None:
        """Begin to make connections. Raises `LinkError` if a certificate is unusable."""
        if self._trouble:
            raise LinkError(self._trouble)
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))

    def secure(self, sock: socket.socket) -> "SecureSocket":
        """Return TLS on the socket of a connection."""
        return SecureSocket(sock, self._context, self._listens, self._name, self._scratch)


class SecureSocket:
    """One connection over TLS, set up by `shake()`. Connections of a loop can share the `scratch` buffer.

    `pending`: there may be bytes to read that the socket does not announce. `said` is what came first, and
    `unsecured_bytes` how much, until the handshake is done.
    """

    __slots__ = (
        "_ended",
        "_fault",
        "_incoming",
        "_left",
        "_outgoing",
        "_owed",
        "_read",
        "_scratch",
        "_secured",
        "_socket",
        "_ssl",
        "pending",
        "said",
        "unsecured_bytes",
    )

    def __init__(
        self,
        sock: socket.socket,
        secure: "ssl.SSLContext",
        listens: bool,
        name: str | None,
        scratch: memoryview,
    ) -> None:
        self._socket, self._scratch = sock, scratch
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = secure.wrap_bio(self._incoming, self._outgoing, listens, None if listens else name)
        self._read: Callable[[int, memoryview], int] = self._ssl.read  # type: ignore[assignment]
        self._left = memoryview(b"")  # encrypted, and not yet sent
        self._owed = 0  # see `send`
        self._fault, self.said = "", b""
        self.unsecured_bytes = 0
        self._secured = self._ended = self.pending = False

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def family(self) -> int:
        return self._socket.family

    def getpeername(self) -> Any:
        return self._socket.getpeername()

    def getsockname(self) -> Any:
        return self._socket.getsockname()

    @property
    def proven(self) -> bool:
        """Whether the peer has shown a certificate that an authority of ours has signed."""
        return self._secured and self._ssl.context.verify_mode == ssl.CERT_REQUIRED

    def peer_names(self) -> tuple[str, ...]:
        """Return the names in the peer's certificate; none, if it has none or it was not verified."""
        found: Any = self._ssl.getpeercert() or {}
        subject = [pair for pairs in found.get("subject", ()) for pair in pairs if pair[0] == "commonName"]
        return tuple(dict.fromkeys(text for _, text in (*subject, *found.get("subjectAltName", ()))))

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self._socket.setsockopt(level, option, value)

    def shake(self) -> bool:
        """Continue the handshake, and return whether it is done. Raises `OSError` if it fails."""
        while not self._secured:
            try:
                self._ssl.do_handshake()
            except ssl.SSLWantReadError:
                self._flush_some()
                self._fetch()
            except ssl.SSLError as error:
                self._flush_some()  # it says to the other side why
                raise OSError(_words(error)) from error
            else:
                self._secured = self.pending = True
                self.said, self.unsecured_bytes = b"", 0
                self._flush_some()
            if self._ended:
                raise OSError("closed during the TLS handshake" if self.unsecured_bytes else CLOSED_BY_PEER)
        return True

    def _fetch(self) -> None:
        """Read encrypted bytes from the network."""
        count = self._socket.recv_into(self._scratch)
        self._ended = not count
        if not self._secured:
            self.unsecured_bytes += count
            self.said = (self.said + self._scratch[: min(count, SAID_BYTES)])[:SAID_BYTES]
        self._incoming.write(self._scratch[:count])

    def recv(self, size: int) -> bytes:
        """Read as `socket.recv` does."""
        buffer = bytearray(size)
        return bytes(buffer[: self.recv_into(memoryview(buffer))])

    def recv_into(self, buffer: memoryview) -> int:
        """Read as `socket.recv_into` does, several records at once. Raises `OSError`."""
        filled = self._decrypt(buffer) if self.pending else 0
        if not filled and not self._ended:
            self._fetch()
            filled = self._decrypt(buffer)
        if not filled and not self._ended:
            raise BlockingIOError
        return filled

    def _decrypt(self, buffer: memoryview) -> int:
        """Return how many bytes were put into `buffer`. Without room for more, they may be `pending`."""
        filled, self.pending = 0, False
        try:
            while filled < len(buffer) and not self._ended and not self._fault:
                count = self._read(len(buffer) - filled, buffer[filled:])
                filled += count
                self._ended = not count  # the other side has said that this is the end
            self.pending = True
        except ssl.SSLWantReadError:
            if self._outgoing.pending:
                self._flush_some()
        except ssl.SSLZeroReturnError:
            self._ended = self.pending = True
        except ssl.SSLError as error:
            self._flush_some()  # it says to the other side why
            self._fault, self.pending = _words(error), True
        if self._fault and not filled:
            raise OSError(self._fault)
        return filled

    def send(self, data: Buffer) -> int:
        """Send as `socket.send` does. Raises `OSError`.

        Encrypted bytes must go out. If some of them are left, the last byte of `data` is not counted, so that
        the caller waits and calls again with that byte first: it is skipped then.
        """
        self._flush()
        view, done = memoryview(data), self._owed
        if not view:
            return 0
        self._owed = 0
        while done < len(view):
            done += self._ssl.write(view[done : done + _PIECE_BYTES])
            try:
                self._flush()
            except BlockingIOError:
                self._owed = 1
                break
        return done - self._owed

    def sendmsg(self, views: Iterable[memoryview]) -> int:
        """Send some of `views` as `send` does: short ones together in one record."""
        size, pieces = 0, list[memoryview]()
        for view in views:
            pieces.append(view[:_PIECE_BYTES])
            size += len(pieces[-1])
            if size >= _PIECE_BYTES or len(pieces[-1]) < len(view):
                break
        return self.send(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def _flush(self) -> None:
        """Send all encrypted bytes. Raises `OSError`: `BlockingIOError` if some of them are left."""
        while self._left or self._outgoing.pending:
            self._left = self._left or memoryview(self._outgoing.read())
            self._left = self._left[self._socket.send(self._left) :]

    def _flush_some(self) -> None:
        with suppress(OSError):
            self._flush()

    def leave(self) -> socket.socket:
        """Announce the end, if that is possible at once. Return the socket below, which is still open."""
        if self._secured:
            with suppress(OSError):
                self._ssl.unwrap()  # it wants to read, but we do not wait
        self._flush_some()
        return self._socket

    def close(self) -> None:
        """Announce the end, if that is possible at once, and close the socket."""
        self.leave().close()
