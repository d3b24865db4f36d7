"""The client of status pages: asks a gateway for its status over the network."""

import http.client
import os
import ssl
from typing import Final

from appliance.status.client import ANSWER_BYTES, ANSWER_S, Status, read_status
from topologies.model.status import HTTPS, place_of

TOKEN: Final = "BUSCOUPLER_TOKEN"
"""The variable of the environment with the token that is shown."""


def ask_page(url: str, ca_file: str | None = None, limit_s: float = ANSWER_S) -> Status:
    """Return the status of a gateway whose page is at `url`. Raises `OSError` or ValueError.

    `ca_file` has the authorities to trust, if it is not one of the system's.
    """
    connection = _connection(url, ca_file, limit_s)
    try:
        connection.request("GET", "/status.json", headers=_headers())
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES)
    except http.client.HTTPException as error:
        raise ValueError(f"{url}: this is no status page: {error!r}") from error
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        words = body[:200].decode("utf-8", "replace").strip()
        raise ValueError(f"{url}: {answer.status} {answer.reason}: {words}")
    return read_status(url, body)


def _connection(url: str, ca_file: str | None, limit_s: float) -> http.client.HTTPConnection:
    host, port = place_of(url)
    if url.startswith(f"{HTTPS}:"):
        trust = ssl.create_default_context(cafile=ca_file)
        return http.client.HTTPSConnection(host, port, timeout=limit_s, context=trust)
    return http.client.HTTPConnection(host, port, timeout=limit_s)


def _headers() -> dict[str, str]:
    token = os.environ.get(TOKEN, "")
    return {"Authorization": f"Bearer {token}"} if token else {}
