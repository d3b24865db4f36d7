"""One end of a proxy: it watches its catalog, offers services, and lists those that it takes."""

import asyncio
import logging
import secrets
from asyncio import AbstractEventLoop, StreamReader, StreamWriter, Task
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

from bus.errors import LinkError
from bus.text import plain
from bus.transports.binding import Binding
from bus.transports.seats import dials
from devices.dbp.nodes.client import Client
from devices.dbp.nodes.line import check_catalog
from devices.dbp.nodes.listing import Address, Listed
from devices.dbp.nodes.presence import NodeError
from devices.dbp.proxy.crossing import Dialling, Listening
from devices.dbp.proxy.device import ProxySpec
from devices.dbp.proxy.offers import Offers, Taken, fitting, offers_of, takes_of
from devices.dbp.proxy.proxied import ProxiedService
from devices.dbp.proxy.tunnel import Tunnel
from devices.dbp.proxy.wire import Hello, Target
from devices.device import DeviceSpec
from devices.service import Service

log = logging.getLogger("buscoupler.proxy")

LOOK_S: Final = 1.0
SHORT: Final = "descriptors short"
"""The reason of services that are not taken: they need more than a quarter of the descriptors."""
_COUNTS: Final = ("opened", "bytes_in", "bytes_out", "bytes_dropped")


class Proxy(Service):
    """A proxy. Raises `LinkError` for certificates that cannot be used."""

    def __init__(self, name: str, spec: DeviceSpec, look_s: float = LOOK_S) -> None:
        super().__init__(name, spec)
        assert isinstance(spec, ProxySpec)
        assert spec.tls is not None
        check_catalog(spec.proxy)
        self._spec, self._look_s = spec, look_s
        self._hello = Hello(secrets.token_hex(8), name)
        crossing = Dialling if spec.dial else Listening
        self.crossing: Dialling | Listening = crossing(spec.url, spec.tls, self._serve)
        self._tunnel: Tunnel | None = None
        self._listed: Mapping[str, Listed] = {}
        self._offers = Offers({}, {})
        self._proxied: dict[str, ProxiedService] = {}
        self._denied: Mapping[str, str] = {}
        self._left_out = frozenset[str]()
        self._counted: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._tasks: set[Task[None]] = set()

    @property
    def urls(self) -> Sequence[str]:
        return [self.crossing.url]

    @property
    def bindings(self) -> Sequence[Binding[Any]]:
        proxied = (binding for one in self._proxied.values() for binding in one.bindings)
        return [*self.crossing.bindings, *proxied]

    @property
    def counts(self) -> Mapping[str, int]:
        tunnel = self._tunnel
        streams = {"streams": tunnel.streams if tunnel else 0}
        here = {
            "offered": len(self._offers.services),
            "taken": self._listed_here,
            "denied": len(self._denied),
        }
        return here | streams | {name: self._counted[name] for name in _COUNTS}

    @property
    def _listed_here(self) -> int:
        return sum(one.is_listed for one in self._proxied.values())

    @property
    def rejected(self) -> Mapping[str, int]:
        return dict(self._refused + self.crossing.rejected)

    def start(self, loop: AbstractEventLoop) -> None:
        self._loop, self.state = loop, "opening"
        self._begin(self._cross())
        self._begin(self._watch())

    async def _cross(self) -> None:
        try:
            await self.crossing.run()
        except LinkError as error:
            self.state, self.fault = "waiting", str(error)
            log.error("%s: %s", self.name, error)

    async def _watch(self) -> None:
        """Read the near catalog each second, and send changed offers to the other side."""
        async with Client(self._spec.proxy) as client:
            while True:
                try:
                    self._listed, self.condition = await client.services(), ""
                except (NodeError, LinkError) as error:
                    self.condition = str(error)  # the services of the last list may still be reachable
                self._tell()
                self._note_denials()
                await asyncio.sleep(self._look_s)

    def _note_denials(self) -> None:
        """Log each service of the other side that the near catalog denies, once for each reason."""
        denied = {name: one.denial for name, one in self._proxied.items() if one.denial}
        for name, why in denied.items():
            if self._denied.get(name) != why:
                log.warning("%s: %s of the other side is not listed here: %s", self.name, plain(name), why)
        self._denied = denied

    def _tell(self, anew: bool = False) -> None:
        if self._tunnel is None:
            return
        before = self._offers.services
        offers = offers_of(self._listed, self._spec.offers, self._hello.id, self._tunnel.far.id, before)
        changed, self._offers = offers.services != self._offers.services, offers
        if (changed or anew) and not self._tunnel.offer(offers.services):
            self._refused["offer too long"] += 1

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> str:
        counts = self._counted, self._refused
        tunnel = Tunnel(reader, writer, self._spec.dial is not None, self._hello, self, *counts)
        try:
            return await tunnel.run()
        finally:
            self._left(tunnel)

    # the tunnel's `Near`

    def met(self, tunnel: Tunnel, hello: Hello) -> str:
        """Accept the other proxy, or return why not. A proxy that connects again replaces its old tunnel."""
        if hello.id == self._hello.id:
            return "it is this proxy itself"
        if self._tunnel is not None and self._tunnel.far.id != hello.id:
            self._refused["another proxy"] += 1
            return "another proxy is connected"
        if self._tunnel is not None:
            old = self._tunnel
            self._left(old)
            old.close()
        self.crossing.met()
        self._tunnel, self.state, self.fault = tunnel, "up", ""
        log.info("%s: joined with %s", self.name, hello.name)
        self._tell(anew=True)
        return ""

    def offered(self, tunnel: Tunnel, services: dict[str, dict[str, Any]]) -> None:
        if tunnel is self._tunnel:
            taken = takes_of(services, self._spec.accepts, self._hello.id, self._proxied)
            fit = fitting(taken, dials())
            self._note_left_out(frozenset(taken.keys() - fit.keys()))
            self._proxy_all(fit, tunnel)

    def _note_left_out(self, names: frozenset[str]) -> None:
        """Count and log the services for whose ports descriptors are short, each once."""
        if more := sorted(names - self._left_out):
            self._refused[SHORT] += len(more)
            others = f" and {len(more) - 1} more" if len(more) > 1 else ""
            log.warning("%s: not listed here, as %s: %s%s", self.name, SHORT, plain(more[0]), others)
        self._left_out = names

    def address_of(self, target: Target) -> Address | None:
        return self._offers.addresses.get((target.service, target.interface))

    def _proxy_all(self, taken: Mapping[str, Taken], tunnel: Tunnel) -> None:
        for name, one in list(self._proxied.items()):
            if taken.get(name) != one.taken:
                self._begin(self._proxied.pop(name).close())
        for name, fields in taken.items():
            if name not in self._proxied:
                made = ProxiedService(name, fields, tunnel, self._spec.host, self._spec.proxy)
                self._proxied[name] = made
                made.open(self._loop)

    def _left(self, tunnel: Tunnel) -> None:
        """Forget a tunnel that has ended, with the services behind it. Idempotent."""
        if tunnel is self._tunnel:
            self._tunnel, self._offers = None, Offers({}, {})
            self.losses += 1
            self.state, self.fault = "waiting", "the other side is gone"
            self._proxy_all({}, tunnel)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        self.crossing.close()
        tunnel = self._tunnel
        if tunnel is not None:
            self._left(tunnel)
            tunnel.close()
