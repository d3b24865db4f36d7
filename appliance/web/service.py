"""The status page of a gateway: it opens a port, and changes to other settings at a reload."""

import errno
import logging
import socket
from asyncio import AbstractEventLoop
from typing import TYPE_CHECKING, NamedTuple

from appliance.status.rows import LinkRow, waiting_rows
from appliance.status.view import View
from appliance.web.guard import Guard
from appliance.web.people import NOBODY, People, people_of, token_in
from appliance.web.server import Server
from bus.errors import BusError, LinkError, words_of
from bus.hub import Hub
from bus.machine.files import NotRegular, read_text
from bus.report import Report
from bus.transports.binding import Binding, SocketPlace
from bus.transports.secure import context
from bus.transports.sockets import Acceptor
from bus.urls import url_host
from topologies.model.status import StatusSpec, place_of
from topologies.resolved.files import certificates, stamped

if TYPE_CHECKING:
    from ssl import SSLContext

log = logging.getLogger("buscoupler")


class Prepared(NamedTuple):
    """The content of the files of a page: the `token` that readers show, "" for none, and its TLS context.

    `address` is that of the gateway, by which readers may call it, too. `people` may acknowledge alarms.
    `trouble` says why there can be no page, "" if there can. `stamps` differ once a file has been renewed.
    """

    spec: StatusSpec
    address: str
    token: str = ""
    secure: "SSLContext | None" = None
    trouble: str = ""
    people: People = NOBODY
    stamps: tuple[object, ...] = ()


def prepare(spec: StatusSpec, address: str) -> Prepared:
    """Read the files of a page of a gateway. This may block: it is no work for an event loop."""
    if not spec.serve:
        return Prepared(spec, address)
    own = filter(None, (spec.token_file, spec.ack_file))
    stamps = *stamped(own), *certificates(spec.tls)  # before they are read
    try:
        secure = None if spec.tls is None else context(spec.address, spec.tls, True)
        return Prepared(spec, address, _token(spec), secure, people=_people(spec), stamps=stamps)
    except (OSError, ValueError, BusError) as error:
        words = words_of(error) if isinstance(error, OSError) else str(error)
        return Prepared(spec, address, trouble=words, stamps=stamps)


class StatusPage:
    """The page of a gateway. If it cannot listen, the gateway runs without it and the log has a warning."""

    def __init__(self) -> None:
        self._hub = Hub("status page")
        self._spec, self._served = StatusSpec(), tuple[object, ...]()
        self._server: Server | None = None
        self._binding: Binding[int] | None = None
        self.url = ""

    def follow(self, prepared: Prepared, view: View, loop: AbstractEventLoop) -> None:
        """Serve as `prepared` says from now on. Do nothing if the page does so already."""
        wanted = prepared.spec, prepared.address, prepared.stamps
        if self._server is not None and wanted == self._served:
            return
        self.close()
        self._spec, self._served = prepared.spec, wanted
        if not self._spec.serve:
            return
        try:
            if prepared.trouble:
                raise LinkError(prepared.trouble)
            self._open(prepared, view, loop)
        except LinkError as error:
            self._server = None  # so that the next reload tries again
            log.warning("%s: no status page: %s", self._spec.address, error)

    def _open(self, prepared: Prepared, view: View, loop: AbstractEventLoop) -> None:
        spec, secure = prepared.spec, prepared.secure
        names = (*spec.hosts, prepared.address, socket.gethostname())
        guard = Guard(names, prepared.token, secure is not None, prepared.people)
        self._server, self._loop = Server(view, guard, secure), loop
        host, port = place_of(spec.address)
        try:
            self._listen(host, port)
        except LinkError as error:
            cause = error.__cause__
            is_taken = isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE
            if spec.listen is not None or not is_taken:
                raise
            self._listen(host, 0)  # any free port will do if nobody chose one

    def _listen(self, host: str, port: int) -> None:
        url = _url(self._spec, port)
        self._binding = Binding(url, (0, (host, port)), self._bind, self._listens)
        self._binding.open(self._loop)

    def _bind(self, place: SocketPlace) -> int:
        assert self._server is not None
        return self._server.open(Acceptor(*place), self._loop, self._on_trouble)

    def _listens(self, port: int) -> None:
        self.url = _url(self._spec, port)
        log.info("status page at %s", self.url)

    def _on_trouble(self, error: OSError) -> None:
        log.warning("%s: cannot accept: %s; will go on trying", self.url, words_of(error))

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

    @property
    def services(self) -> tuple["StatusPage", ...]:
        """The page itself, unless the topology wants none."""
        return (self,) if self._spec.serve else ()

    def report(self) -> Report:
        """Return the address and the counts of the page; nothing about its readers."""
        if self._server is None:
            return Report("status page, which could not be opened", "page")
        return Report("status page", "page", (self.url,), self._server.counts, self._server.refused)

    def close(self) -> None:
        """Stop listening. Idempotent."""
        if self._binding is not None:
            self._binding.close()
            self._binding = None
        if self._server is not None:
            self._server.close()
            self._server, self.url = None, ""


def _token(spec: StatusSpec) -> str:
    """Return the token that readers must show, "" for none. Raises OSError or ValueError."""
    if spec.token_file is None:
        return ""
    try:
        return token_in(spec.token_file, read_text)
    except NotRegular as error:
        raise ValueError(f"{spec.token_file}: {error}") from error


def _people(spec: StatusSpec) -> People:
    """Return the people who may acknowledge alarms. Raises OSError or ValueError."""
    if spec.ack_file is None:
        return NOBODY
    try:
        return People(people_of(read_text(spec.ack_file)))
    except (ValueError, NotRegular) as error:
        raise ValueError(f"{spec.ack_file}: {error}") from error


def _url(spec: StatusSpec, port: int) -> str:
    host = url_host(place_of(spec.address)[0])
    return f"{'http' if spec.tls is None else 'https'}://{host}:{port}"
