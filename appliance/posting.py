"""One POST over HTTP, for threads that may wait: of telemetry, and of alarms."""

from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLContext
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from appliance.until import Until
from bus.machine.addresses import dialled

LATER: Final = (408, 429, 502, 503, 504)
"""The statuses after which it makes sense to try again."""
_ANSWER_BYTES_MAX: Final = 1 << 16


class Answer(NamedTuple):
    """The answer to a request: its status, and as much of its body as is read."""

    status: int
    body: bytes


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    timeout_s: float,
    trust: SSLContext | None = None,
    port: int | None = None,
) -> Answer:
    """Post JSON to `url`, for at most `timeout_s` once connected. Return the answer; redirections are not
    followed.

    `trust` is for https, which needs it, and `port` is the one for a URL without. Raises OSError and
    HTTPException.
    """
    parts = urlsplit(url)
    host, at = parts.hostname or "", parts.port or port
    is_secure = parts.scheme == "https"
    assert is_secure == (trust is not None)
    connection = HTTPSConnection(host, at, context=trust) if is_secure else HTTPConnection(host, at)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    place = connection.host, connection.port
    with dialled(*place, timeout_s) as sock, Until(sock, timeout_s) as until:
        try:
            connection.sock = sock if trust is None else trust.wrap_socket(sock, server_hostname=host)
            connection.request("POST", target, body, {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(_ANSWER_BYTES_MAX))
        except (HTTPException, OSError) as error:
            if until.over or isinstance(error, TimeoutError):  # the socket has the same limit, for each step
                raise TimeoutError(f"no whole answer within {timeout_s:g} s") from error
            raise
        finally:
            connection.close()
