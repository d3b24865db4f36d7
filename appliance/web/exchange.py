"""One connection of HTTP/1.1 at the server's end, by h11: requests in, answers out. Without I/O."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import h11

from appliance.web.messages import Request, Response, text

HEAD_BYTES: Final = 16 * 1024
METHODS: Final = ("GET", "HEAD")
_FIELDS: Final = 16  # of a query
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
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)

    @property
    def ended(self) -> bool:
        """Whether the connection must be closed, because nothing more can be sent."""
        return self._http.our_state in (h11.CLOSED, h11.MUST_CLOSE, h11.ERROR)

    def feed(self, data: bytes) -> Request | Response | None:
        """Take received bytes, b"" at the end. Return a request, a refusal, or None if more must come."""
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
            elif isinstance(event, h11.Data):
                refused = text(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a request here has no body")
                return found if isinstance(found, Response) else refused
            elif isinstance(event, h11.EndOfMessage):
                return found

    def answer(self, response: Response, is_head: bool) -> bytes:
        """Return the bytes of an answer. After a refusal without a request the connection ends."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return b""
        parts = [self._http.send(_head(response, self._http.their_state is not h11.DONE))]
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
            return self.next()
        except h11.RemoteProtocolError as error:
            return text(HTTPStatus(error.error_status_hint), "this is no HTTP request")


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
    if method not in METHODS:
        allow = (("Allow", ", ".join(METHODS)),)
        return text(HTTPStatus.METHOD_NOT_ALLOWED, "this page is only to be read")._replace(headers=allow)
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers]
    try:
        parts = urlsplit(event.target.decode("ascii"))
        query = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=_FIELDS))
    except ValueError:
        return text(HTTPStatus.BAD_REQUEST, "this target of a request cannot be read")
    return Request(method, parts.path or "/", query, dict(pairs), tuple(_of("host", pairs)))


def _of(name: str, pairs: Sequence[tuple[str, str]]) -> Iterable[str]:
    return (value for key, value in pairs if key == name)
