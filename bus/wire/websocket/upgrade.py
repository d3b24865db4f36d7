"""The HTTP upgrade that begins a WebSocket, at both ends, with subprotocol bus.sp.nanomsg.org.

The library `websockets` reads and writes HTTP and checks the rules of RFC 6455. This module adds those of a
bus: the subprotocol, the path, the origin, and a bound on the size of it all.
"""

import re
from http import HTTPStatus

from websockets.client import ClientProtocol
from websockets.datastructures import MultipleValuesError
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from bus.wire.handshake import Handshake
from bus.wire.websocket.origins import Origins

SUBPROTOCOL = Subprotocol("bus.sp.nanomsg.org")
HEAD_BYTES_MAX = 16 * 1024
_READ_BYTES = 4096
_END = b"\r\n\r\n"
_SHOWN_CHARACTERS = 100
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class _Upgrade(Handshake):
    """The common part of both ends: it reads the other end's head to its end, and not beyond."""

    def __init__(self) -> None:
        self._head = bytearray()

    @property
    def wants(self) -> int:
        return min(_READ_BYTES, HEAD_BYTES_MAX - len(self._head))

    def begin(self) -> bytes:
        return b""

    def feed(self, data: bytes) -> bytes:
        self.begun = True
        searched = max(0, len(self._head) - len(_END))
        known = len(self._head)
        self._head += data
        found = self._head.find(_END, searched)
        end = len(self._head) if found < 0 else found + len(_END)
        if _CONTROL.search(self._head, known, end):  # else noise would have a seat until its time is up
            self.fault = "no WebSocket: control characters in the HTTP head"
            return self._refuse()
        if found >= 0:
            self.rest = bytes(self._head[end:])
            return self._judge(bytes(self._head[:end]))
        if len(self._head) >= HEAD_BYTES_MAX:
            self.fault = f"an HTTP head of more than {HEAD_BYTES_MAX} bytes"
        return b""

    def _judge(self, head: bytes) -> bytes:
        raise NotImplementedError

    def _refuse(self) -> bytes:
        """Return the answer to bytes that are no HTTP."""
        return b""


class ServerUpgrade(_Upgrade):
    """The upgrade at the end that listens, at one path. A refusal is an HTTP response that says why."""

    def __init__(self, path: str, origins: Origins) -> None:
        super().__init__()
        self._path, self._origins = path or "/", origins

    def _judge(self, head: bytes) -> bytes:
        protocol = ServerProtocol(subprotocols=[SUBPROTOCOL])
        protocol.receive_data(head)
        request = next(iter(protocol.events_received()), None)
        if not isinstance(request, Request):
            self.fault = f"no WebSocket: {_text(protocol.handshake_exc)}"
            return self._refuse()
        response = self._refusal(protocol, request) or protocol.accept(request)
        if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            self.done = True
        elif not self.fault:
            self.fault = f"no WebSocket of a bus: {_text(protocol.handshake_exc)}"
        return response.serialize()

    def _refuse(self) -> bytes:
        return ServerProtocol().reject(HTTPStatus.BAD_REQUEST, "This is no HTTP request.\n").serialize()

    def _refusal(self, protocol: ServerProtocol, request: Request) -> Response | None:
        """Return the response that refuses a request; None for a good request."""
        try:
            host, origin = request.headers.get("Host"), request.headers.get("Origin")
        except MultipleValuesError:
            host = origin = None
        status, self.fault = HTTPStatus.FORBIDDEN, ""
        if not host:
            status, self.fault = HTTPStatus.BAD_REQUEST, "an HTTP request with no Host, or with several"
        elif (request.path.partition("?")[0] or "/") != self._path:  # NNG sends no path for the root
            status, self.fault = HTTPStatus.NOT_FOUND, f"nothing is at the path {_text(request.path)}"
        else:
            self.fault = self._origins.refusal(origin, host)
        return protocol.reject(status, f"{self.fault}\n") if self.fault else None


class ClientUpgrade(_Upgrade):
    """The upgrade at the end that dials `url`."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._protocol = ClientProtocol(parse_uri(url), subprotocols=[SUBPROTOCOL])

    def begin(self) -> bytes:
        return self._protocol.connect().serialize()

    def _judge(self, head: bytes) -> bytes:
        status = head.partition(b"\r\n")[0].decode("latin-1")
        protocol = self._protocol
        protocol.receive_data(head)
        if not status.startswith("HTTP/1.1 101"):
            self.fault = f"no WebSocket: the answer is {_text(status)}"
        elif protocol.handshake_exc is not None:
            self.fault = f"no WebSocket: {_text(protocol.handshake_exc)}"
        elif protocol.subprotocol != SUBPROTOCOL:
            self.fault = f"no bus: the other side does not speak {SUBPROTOCOL}"
        else:
            self.done = True
        return b""


def _text(value: object) -> str:
    """Return text that may be from the wire, fit for a log."""
    return "".join(c if c.isprintable() else " " for c in str(value))[:_SHOWN_CHARACTERS]
