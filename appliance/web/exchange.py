"""One connection of HTTP/1.1 at the server's end, by h11: requests in, answers out. Without I/O."""

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import h11

from appliance.web.acknowledging import is_acknowledging
from appliance.web.messages import POST, Request, Response, text
from bus.urls import host_in

HEAD_BYTES: Final = 16 * 1024
METHODS: Final = ("GET", "HEAD")
"""The methods of all paths; of one, POST too (`acknowledging`)."""
_FIELDS: Final = 16  # of a query
_LENIENT: Final = re.compile(rb"(?<!\r)\n|\r[^\n]|\n[ \t]|\0")
"""Lines that do not end with CR LF, or go on in the next: proxies differ about where such a head ends."""
_NO_REQUEST: Final = text(HTTPStatus.BAD_REQUEST, "this is no HTTP request")
_NO_BODY: Final = text(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a request here has no body")
_SAFE: Final = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
)


class Exchange:
    """The protocol of one connection: `feed` bytes to get requests, and pass each answer to `answer`."""

    def __init__(self) -> None:
        self._end = b""  # of a line, in what was received before
        self._is_refused = False
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)

    @property
    def ended(self) -> bool:
        """Whether the connection must be closed, because nothing more can be sent."""
        return self._is_refused or self._http.our_state in (h11.CLOSED, h11.MUST_CLOSE, h11.ERROR)

    def feed(self, data: bytes) -> Request | Response | None:
        """Take received bytes, b"" at the end. Return a request, a refusal, or None if more must come.

        After a refusal nothing is read.
        """
        return None if self._is_refused else self._noted(self._read(data))

    def _noted(self, found: Request | Response | None) -> Request | Response | None:
        self._is_refused = isinstance(found, Response)
        return found

    def _read(self, data: bytes) -> Request | Response | None:
        if _LENIENT.search(self._end + data):
            return _NO_REQUEST
        self._end = b"\r\n" if data.endswith(b"\n") else data[-1:] if data.endswith(b"\r") else b""
        try:
            self._http.receive_data(data)
            return self.next()
        except h11.RemoteProtocolError as error:
            return text(HTTPStatus(error.error_status_hint), "this is no HTTP request")

    def next(self) -> Request | Response | None:
        """Return the next complete request, if there is one. Raises `h11.RemoteProtocolError`."""
        found: Request | Response | None = None
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                return None
            if isinstance(event, h11.Request):
                found = _request(event)
                if isinstance(found, Response):
                    return found
            elif isinstance(event, h11.Data):
                return _NO_BODY
            elif isinstance(event, h11.EndOfMessage):
                return found

    def answer(self, response: Response, is_head: bool) -> bytes:
        """Return the bytes of an answer. After a refusal without a request the connection ends."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return b""
        ends = self._is_refused or self._http.their_state is not h11.DONE
        parts = [self._http.send(_head(response, ends))]
        if not response.streams:
            parts.append(self._http.send(h11.Data(data=b"" if is_head else response.body)))
            parts.append(self._http.send(h11.EndOfMessage()))
        return b"".join(part for part in parts if part)

    def more(self, data: bytes) -> bytes:
        """Return the bytes of the next piece of a streaming answer."""
        return self._http.send(h11.Data(data=data)) or b""

    def turn(self) -> Request | Response | None:
        """Begin the next request. Return it if it is complete already."""
        try:
            self._http.start_next_cycle()
            return self._noted(self.next())
        except h11.RemoteProtocolError as error:
            return self._noted(text(HTTPStatus(error.error_status_hint), "this is no HTTP request"))


def _head(response: Response, ends: bool) -> h11.Response:
    headers: list[tuple[str, str]] = [("Content-Type", response.kind), *_SAFE, *response.headers]
    if not response.streams:
        headers.append(("Content-Length", str(len(response.body))))
    if ends:
        headers.append(("Connection", "close"))
    return h11.Response(status_code=response.status, headers=headers, reason=response.status.phrase)


def _request(event: h11.Request) -> Request | Response:
    if not event.http_version.startswith(b"1."):
        return text(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "this page speaks HTTP/1.1")
    method = event.method.decode("ascii", "replace")
    posts = method == POST and is_acknowledging(event.target.decode("ascii", "replace").partition("?")[0])
    if method not in METHODS and not posts:
        allow = (("Allow", ", ".join(METHODS)),)
        return text(HTTPStatus.METHOD_NOT_ALLOWED, "this page is only to be read")._replace(headers=allow)
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers]
    if any(_of("transfer-encoding", pairs)) or any(map(int, _of("content-length", pairs))):
        return _NO_BODY
    hosts = tuple(_of("host", pairs))
    try:
        path, query = _target(event.target.decode("ascii"), hosts)
        fields = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_FIELDS))
    except ValueError:
        return text(HTTPStatus.BAD_REQUEST, "this target of a request cannot be read")
    return Request(method, path or "/", fields, dict(pairs), hosts)


def _target(target: str, hosts: Sequence[str]) -> tuple[str, str]:
    """Return the path and the query. Raises ValueError for a URL with another host than the header's."""
    if target.startswith("/"):
        path, _, query = target.partition("?")
        return path, query
    parts = urlsplit(target)
    if (parts.scheme or parts.netloc) and [host_in(parts.netloc)] != [host_in(host) for host in hosts]:
        raise ValueError(target)
    return parts.path, parts.query


def _of(name: str, pairs: Sequence[tuple[str, str]]) -> Iterable[str]:
    return (value for key, value in pairs if key == name)
