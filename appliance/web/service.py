"""The status page of a gateway: it opens a port, and changes to other settings at a reload."""

import errno
import logging
import socket
from asyncio import AbstractEventLoop, Task
from ssl import SSLContext

from appliance.status.view import View
from appliance.web.guard import Guard, check_token
from appliance.web.server import Server
from bus.errors import BusError, words_of
from bus.files import read_text
from bus.report import Report
from bus.transports.secure import context
from topologies.model.status import StatusSpec, place_of

log = logging.getLogger("buscoupler")


class StatusPage:
    """The page of a gateway. If it cannot listen, the gateway runs without it and the log has a warning."""

    def __init__(self, address: str) -> None:
        self._address = address  # of the gateway
        self._spec = StatusSpec()
        self._server: Server | None = None
        self._socket: socket.socket | None = None
        self._task: Task[None] | None = None
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
        self._socket = sock = _listen(spec)
        self.url = _url(spec, sock, secure)
        log.info("status page at %s", self.url)
        self._server = Server(view, guard, secure)
        self._task = loop.create_task(self._server.open(sock, loop))

    def report(self) -> Report:
        """Return the address and the counts of the page; nothing about its readers."""
        if self._server is None:
            return Report("status page", "page")
        return Report("status page", "page", (self.url,), self._server.counts, self._server.refused)

    def close(self) -> None:
        """Stop listening. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._server is not None and self._socket is not None:
            self._server.close()
            self._socket.close()  # its server may not have begun
            self._server, self.url = None, ""


def _token(spec: StatusSpec) -> str:
    """Return the token that readers must show, "" for none. Raises OSError or ValueError."""
    if spec.token_file is None:
        return ""
    try:
        return check_token(read_text(spec.token_file))
    except ValueError as error:
        raise ValueError(f"{spec.token_file}: {error}") from error


def _listen(spec: StatusSpec) -> socket.socket:
    """Return a socket that listens; at a free port if nobody chose one and the default is taken."""
    host, port = place_of(spec.address)
    try:
        return _bound(host, port)
    except OSError as error:
        if spec.listen is not None or error.errno != errno.EADDRINUSE:
            raise
        return _bound(host, 0)


def _bound(host: str, port: int) -> socket.socket:
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(family, kind)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(64)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def _url(spec: StatusSpec, sock: socket.socket, secure: SSLContext | None) -> str:
    host, port = place_of(spec.address)[0], sock.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    return f"{'http' if secure is None else 'https'}://{shown}:{port}"
