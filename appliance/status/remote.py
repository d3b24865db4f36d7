"""The client of status pages: asks a gateway for its status over the network."""

import http.client
import os
import socket
from typing import Final

from appliance.status.client import ANSWER_BYTES, ANSWER_S, read_status
from appliance.status.shape import Status
from appliance.until import Until
from bus.machine.addresses import dialled
from bus.text import plain
from bus.transports.options import Tls
from bus.transports.secure import load_own, trusting
from topologies.model.status import HTTPS, place_of

TOKEN: Final = "BUSCOUPLER_TOKEN"
"""The variable of the environment with the token that is shown."""


def ask_page(url: str, ca_file: str | None = None, limit_s: float = ANSWER_S) -> Status:
    """Return the status of a gateway whose page is at `url`. Raises `OSError` or ValueError.

    `ca_file` has the authorities to trust, if it is not one of the system's.
    """
    token = os.environ.get(TOKEN, "")
    return read_status(url, get(url, "/status.json", ca_file, limit_s, ANSWER_BYTES, token))


def get(
    url: str, path: str, ca_file: str | None, limit_s: float, most: int, token: str, own: Tls | None = None
) -> bytes:
    """Return what the page at `url` has at a path, at most `most` bytes. Raises as `ask_page` does.

    `token` is shown, "" for none; `own` has the certificate to show.
    """
    host, port = place_of(url)
    connection = http.client.HTTPConnection(host, port)
    with dialled(host, port, limit_s) as sock, Until(sock, limit_s) as until:
        try:
            connection.sock = _secured(sock, url, host, ca_file, own)
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            body = answer.read(most)
        except (http.client.HTTPException, OSError) as error:
            if until.over or isinstance(error, TimeoutError):  # the socket has the same limit, for each step
                raise TimeoutError(f"no whole answer within {limit_s:g} s") from error
            if isinstance(error, OSError):
                raise
            raise ValueError(f"{url}: this is no status page: {plain(repr(error))}") from error
        finally:
            connection.close()
    if answer.status != http.HTTPStatus.OK:
        words = f"{answer.reason}: {body[:200].decode('utf-8', 'replace').strip()}"
        raise ValueError(f"{url}: {answer.status} {plain(words)}")
    return body


def _secured(sock: socket.socket, url: str, host: str, ca_file: str | None, own: Tls | None) -> socket.socket:
    if not url.startswith(f"{HTTPS}:"):
        return sock
    made = trusting(ca_file)
    if own is not None:
        load_own(made, own)
    return made.wrap_socket(sock, server_hostname=host)
