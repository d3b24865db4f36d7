"""The status page of a gateway: it opens a port, and changes to other settings at a reload."""

import errno
import logging
import socket
from asyncio import AbstractEventLoop
from ssl import SSLContext

from appliance.status.view import View
from appliance.web.guard import Guard, check_token
from appliance.web.server import Server
from bus.errors import BusError, words_of
from bus.files import read_text
from bus.report import Report
from bus.transports.secure import context
from bus.transports.sockets import Acceptor
from topologies.model.status import StatusSpec, place_of

log = logging.getLogger("buscoupler")


class StatusPage:
    """The page of a gateway. If it cannot listen, the gateway runs without it and the log has a warning."""

    def __init__(self, address: str) -> None:
        self._address = address  # of the gateway
        self._spec = StatusSpec()
        self._server: Server | None = None
        self.url = ""

    def follow(self, spec: StatusSpec, view: View, loop: AbstractEventLoop) -> None:
        """Serve as `spec` says from now on. Do nothing if the page does so already."""
        if self._server is not None and spec == self._spec:
            return
        self.close()
        self._spec = spec
        if spec.serve:
            try:
                self._open(spec, view, loop)
            except (OSError, ValueError, BusError) as error:
                why = words_of(error) if isinstance(error, OSError) else str(error)
                log.warning("%s: no status page: %s", spec.address, why)

    def _open(self, spec: StatusSpec, view: View, loop: AbstractEventLoop) -> None:
        secure = None if spec.tls is None else context(spec.address, spec.tls, True)
        guard = Guard((*spec.hosts, self._address, socket.gethostname()), _token(spec), secure is not None)
        self._server = Server(view, guard, secure)
        port = self._listen(self._server, loop)
        self.url = _url(spec, port, secure)
        log.info("status page at %s", self.url)

    def _listen(self, server: Server, loop: AbstractEventLoop) -> int:
        """Listen; at a free port if nobody chose one and the default is taken. Return the port."""
        host, port = place_of(self._spec.address)
        try:
            return server.open(Acceptor(0, (host, port)), loop, self._on_trouble)
        except OSError as error:
            if self._spec.listen is not None or error.errno != errno.EADDRINUSE:
                raise
            return server.open(Acceptor(0, (host, 0)), loop, self._on_trouble)

    def _on_trouble(self, error: OSError) -> None:
        log.warning("%s: cannot accept: %s; will go on trying", self.url, words_of(error))

    def report(self) -> Report:
        """Return the address and the counts of the page; nothing about its readers."""
        if self._server is None:
            return Report("status page", "page")
        return Report("status page", "page", (self.url,), self._server.counts, self._server.refused)

    def close(self) -> None:
        """Stop listening. Idempotent."""
        if self._server is not None:
            self._server.close()
            self._server, self.url = None, ""


def _token(spec: StatusSpec) -> str:
    """Return the token that readers must show, "" for none. Raises OSError or ValueError."""
    if spec.token_file is None:
        return ""
    try:
        return check_token(read_text(spec.token_file))
    except ValueError as error:
        raise ValueError(f"{spec.token_file}: {error}") from error


def _url(spec: StatusSpec, port: int, secure: SSLContext | None) -> str:
    host = place_of(spec.address)[0]
    shown = f"[{host}]" if ":" in host else host
    return f"{'http' if secure is None else 'https'}://{shown}:{port}"
