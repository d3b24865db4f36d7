"""The channel of a link: the layers between its sockets and its messages, by the scheme of its address."""

import os
import socket

from bus.errors import LinkError
from bus.extras import lacking
from bus.keys import Keyring
from bus.needs import WEB_LIBRARY
from bus.transports.framing import Framing, sp_framing
from bus.transports.options import Tls
from bus.transports.secure import SecureSocket, Security
from bus.urls import TLS_SCHEMES, WEB_SCHEMES, split_url
from bus.wire.signed import NONCE_BYTES, Session, record_bytes


class Channel:
    """The channel of one address: TLS, the framing and the keys. The framing is SP unless `framing` is given.

    `origins` are the origins of pages that may connect to a WebSocket here, beside those of its own host.
    With `keys` both ends sign what they send.
    """

    def __init__(
        self,
        url: str,
        listens: bool,
        framing: Framing | None = None,
        tls: Tls | None = None,
        origins: tuple[str, ...] = (),
        keys: Keyring | None = None,
    ) -> None:
        self._text, self._url, self._listens = url, split_url(url), listens
        self._given, self.origins, self.keys = framing, origins, keys
        secure = self._url.scheme in TLS_SCHEMES
        self._security = Security(url, tls or Tls(), listens) if secure else None

    def revise(self, other: "Channel") -> None:
        """Take over the origins and the keys of another channel, from the next framing on."""
        self.origins, self.keys = other.origins, other.keys

    def session(self) -> Session | None:
        """Return the signing session of one new connection; None without keys."""
        return None if self.keys is None else Session(self.keys, self._listens, os.urandom(NONCE_BYTES))

    def framing(self, message_bytes: int) -> Framing:
        """Return the framing for messages of at most `message_bytes`; with keys, for records of them."""
        if self._given is not None:
            return self._given
        if self.keys is not None:
            message_bytes = record_bytes(message_bytes)
        if self._url.scheme not in WEB_SCHEMES:
            return sp_framing(message_bytes, self._url.scheme == "ipc")
        try:
            from bus.transports import websocket
        except ModuleNotFoundError as error:
            raise LinkError(lacking(self._text, *WEB_LIBRARY[1:])) from error
        if self._listens:
            return websocket.listening_framing(self._url, message_bytes, self.origins)
        return websocket.dialling_framing(self._text, message_bytes)

    def open(self) -> None:
        """Begin to make connections. Raises `LinkError` if a certificate is unusable."""
        if self._security is not None:
            self._security.open()

    def secure(self, sock: socket.socket) -> socket.socket | SecureSocket:
        """Return the socket that the pipe of a connection uses: the given one, or TLS on it."""
        return sock if self._security is None else self._security.secure(sock)
