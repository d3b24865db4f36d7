"""The status page of a gateway: it opens a port, and changes to other settings at a reload."""

import errno
import logging
import socket
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable
from ssl import SSLContext
from typing import NamedTuple

from appliance.status.rows import LinkRow, waiting_rows
from appliance.status.view import View
from appliance.web.guard import Guard, check_token
from appliance.web.server import Server
from bus.errors import BusError, LinkError, words_of
from bus.files import read_regular
from bus.hub import Hub
from bus.report import Report
from bus.transports.binding import Binding
from bus.transports.secure import context
from bus.transports.sockets import listen_at
from topologies.model.status import StatusSpec, place_of

log = logging.getLogger("buscoupler")


class Prepared(NamedTuple):
    """What a page needs of files: the `token` that readers must show, "" for none, and its TLS context.

    `trouble` says why there can be no page, "" if there can.
    """

    spec: StatusSpec
    token: str = ""
    secure: SSLContext | None = None
    trouble: str = ""


def prepare(spec: StatusSpec) -> Prepared:
    """Read the files of a page. This may block: it is no work for an event loop."""
    if not spec.serve:
        return Prepared(spec)
    try:
        secure = None if spec.tls is None else context(spec.address, spec.tls, True)
        return Prepared(spec, _token(spec), secure)
    except (OSError, ValueError, BusError) as error:
        return Prepared(spec, trouble=words_of(error) if isinstance(error, OSError) else str(error))


class StatusPage:
    """The page of a gateway. If it cannot listen, the gateway runs without it and the log has a warning."""

    def __init__(self, address: str) -> None:
        self._address = address  # of the gateway
        self._hub = Hub("status page")
        self._spec = StatusSpec()
        self._server: Server | None = None
        self._binding: Binding[socket.socket] | None = None
        self._socket: socket.socket | None = None
        self._task: Task[None] | None = None
        self.url = ""

    def follow(self, prepared: Prepared, view: View, loop: AbstractEventLoop) -> None:
        """Serve as `prepared` says from now on. Do nothing if the page does so already."""
        if self._server is not None and prepared.spec == self._spec:
            return
        self.close()
        self._spec = prepared.spec
        if not self._spec.serve:
            return
        try:
            if prepared.trouble:
                raise LinkError(prepared.trouble)
            self._open(prepared, view, loop)
        except LinkError as error:
            log.warning("%s: no status page: %s", self._spec.address, error)

    def _open(self, prepared: Prepared, view: View, loop: AbstractEventLoop) -> None:
        spec, secure = prepared.spec, prepared.secure
        guard = Guard((*spec.hosts, self._address, socket.gethostname()), prepared.token, secure is not None)
        server = self._server = Server(view, guard, secure)
        host, port = place_of(spec.address)

        def serve(sock: socket.socket) -> None:
            self._socket, self.url = sock, _url(spec, sock, secure)
            log.info("status page at %s", self.url)
            self._task = loop.create_task(server.open(sock, loop))

        try:
            self._bind((host, port), serve, loop)
        except LinkError as error:
            cause = error.__cause__
            is_taken = isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE
            if spec.listen is not None or not is_taken:  # any free port will do if nobody chose one
                self._server = None
                raise
            self._bind((host, 0), serve, loop)

    def _bind(
        self, place: tuple[str, int], serve: Callable[[socket.socket], None], loop: AbstractEventLoop
    ) -> None:
        url = f"{'https' if self._spec.tls else 'http'}://{bracketed(place[0])}:{place[1]}"
        self._binding = Binding(url, (0, place), lambda at: listen_at(*at), serve)
        self._binding.open(loop)

    @property
    def hubs(self) -> tuple[Hub, ...]:
        """A hub without pipes, while the page waits for its address: the row that says so is there."""
        return (self._hub,) if self.rows else ()

    @property
    def rows(self) -> list[LinkRow]:
        """The row of the page's address, while that is not there yet."""
        return [] if self._binding is None else waiting_rows(self._hub, [self._binding])

    @property
    def watched(self) -> list[LinkRow]:
        """The row of an address that was waited for."""
        waited = self._binding is not None and self._binding.waited
        return [LinkRow(self._hub, self._binding.name, self._binding)] if self._binding and waited else []

    def report(self) -> Report:
        """Return the address and the counts of the page; nothing about its readers."""
        if self._server is None:
            return Report("status page", "page")
        return Report("status page", "page", (self.url,), self._server.counts, self._server.refused)

    def close(self) -> None:
        """Stop listening. Idempotent."""
        if self._binding is not None:
            self._binding.close()
            self._binding = None
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._server is not None:
            self._server.close()
            self._server, self.url = None, ""
        if self._socket is not None:
            self._socket.close()  # its server may not have begun
            self._socket = None


def _token(spec: StatusSpec) -> str:
    """Return the token that readers must show, "" for none. Raises OSError or ValueError."""
    if spec.token_file is None:
        return ""
    try:
        return check_token(read_regular(spec.token_file).decode("ascii"))
    except ValueError as error:
        raise ValueError(f"{spec.token_file}: {error}") from error


def _url(spec: StatusSpec, sock: socket.socket, secure: SSLContext | None) -> str:
    host, port = place_of(spec.address)[0], sock.getsockname()[1]
    return f"{'http' if secure is None else 'https'}://{bracketed(host)}:{port}"


def bracketed(host: str) -> str:
    """Return a host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host
