"""The requests to a status page, and its answers. Pure."""

from http import HTTPStatus
from typing import Final, NamedTuple

POST: Final = "POST"
"""The method of a request that changes something."""


class Request(NamedTuple):
    """A request. `headers` has values by lower-case names; `hosts` has the values of all `Host` headers."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    hosts: tuple[str, ...]


class Response(NamedTuple):
    """An answer. If it `streams`, the body goes on until one end closes."""

    status: HTTPStatus
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()
    streams: bool = False


def text(status: HTTPStatus, words: str) -> Response:
    """Return an answer of one line."""
    return Response(status, f"{words}\n".encode())
