"""One POST over HTTP, for threads that may wait: of telemetry, and of alarms."""

from collections.abc import Mapping
from http.client import HTTPConnection, HTTPSConnection
from ssl import SSLContext
from typing import Final
from urllib.parse import urlsplit

LATER: Final = (408, 429, 502, 503, 504)
"""The statuses after which it makes sense to try again."""
_ANSWER_BYTES_MAX: Final = 1 << 16


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    timeout_s: float,
    trust: SSLContext | None = None,
    port: int | None = None,
) -> int:
    """Post JSON to `url`. Return the status of the answer; redirections are not followed.

    `trust` is needed for https, and `port` is the one for a URL without. Raises OSError and HTTPException.
    """
    parts = urlsplit(url)
    host, at = parts.hostname or "", parts.port or port
    if parts.scheme == "https":
        connection: HTTPConnection = HTTPSConnection(host, at, timeout=timeout_s, context=trust)
    else:
        connection = HTTPConnection(host, at, timeout=timeout_s)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        answer.read(_ANSWER_BYTES_MAX)
        return answer.status
    finally:
        connection.close()
