"""The base of links over stream sockets that listen or dial, with SP or another framing; not for inproc."""

import errno
import logging
import os
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any

from bus.errors import LinkError, words_of
from bus.hub import Hub, Link, State
from bus.ledger import Stats
from bus.machine.wake_hook import Standstill, stood_still
from bus.transports.channel import Channel
from bus.transports.framing import Framing
from bus.transports.options import STREAMS, StreamOptions
from bus.transports.sockets import CLOSED_BY_PEER, tune
from bus.transports.stream import Bounds, Calls, StreamPipe
from bus.urls import BEACON, split_url
from bus.vacancy import NO_PEER
from bus.wire.batch import Batch
from bus.wire.signed import SIGNS, Session, begins_with_hello

log = logging.getLogger("buscoupler.bus")

_LEFT = {CLOSED_BY_PEER} | {
    words_of(OSError(number, os.strerror(number)))
    for number in (errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT, errno.EHOSTUNREACH)
}  # faults of a peer that has gone


class StreamLink:
    """The base of listening and dialling links: their limits, their framing, the live pipes."""

    condition = ""
    peers_leave = True
    """Whether a peer that leaves is no fault."""
    _hub: Hub
    _loop: AbstractEventLoop

    def __init__(self, url: str, channel: Channel, name: str, wary: bool, options: dict[str, Any]) -> None:
        self.name, self.url = name or url, url
        self.options = StreamOptions(**options)
        self.queue_bytes = self.options.queue_bytes
        self.pipes: set[StreamPipe] = set()
        self.fault = ""
        self.losses = 0
        self.channel, self._wary = channel, wary
        self._sessions: dict[StreamPipe, Session] = {}
        self._refused = Stats()
        self._framing = channel.framing(self.options.message_bytes)
        self._is_open = self._enlisted = False
        self._standstill = Standstill(self._woke)

    def _begin(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start on a hub and a loop. Raises `LinkError` for unusable certificates."""
        self._hub, self._loop = hub, loop
        self.channel.open()
        self._join(hub)
        self._standstill.watch(loop, self.options.age_s)

    def revise(self, other: Link) -> bool:
        """Take over the limits of another link to the same address, for present peers too."""
        if not isinstance(other, StreamLink):
            return False
        self.options, self.queue_bytes = other.options, other.queue_bytes
        self.channel.revise(other.channel)
        self._framing = self.channel.framing(self.options.message_bytes)
        for pipe in tuple(self.pipes):
            pipe.revise(self.queue_bytes, self.options.message_bytes, self.options.age_s)
            if not self._is_trusted(pipe):
                pipe.close("its key is in force no more")
        if self._is_open:
            self._standstill.watch(self._loop, self.options.age_s)
        return True

    def _is_trusted(self, pipe: StreamPipe) -> bool:
        """Tell whether the keys of a connection are still in force; without any, whether no keys are."""
        session, keys = self._sessions.get(pipe), self.channel.keys
        return keys is None if session is None else session.is_trusted(keys)

    @property
    def state(self) -> State:
        raise NotImplementedError

    def _adopt(
        self, sock: socket.socket, name: str, on_close: Callable[[StreamPipe], None], host: str = ""
    ) -> StreamPipe:
        if sock.family != socket.AF_UNIX:
            tune(sock, self.options.silence_s or self.options.age_s)
        session, framing = self.channel.session(), self._framing_of_peer()
        if session is not None:
            from bus.transports.signing import signed  # late: few links have keys

            framing = signed(framing, session, self.options.message_bytes)
        on_batch = self._first if self._wary and session is None else self._hub.publish
        pipe = StreamPipe(
            self.channel.secure(sock),
            name,
            framing,
            Bounds(self.queue_bytes, self.options.age_s),
            Calls(on_batch, on_close, self._enter),
            link=self.name,
            accepted=self.peers_leave,
            host=host,
        )
        self.pipes.add(pipe)
        if session is not None:
            self._sessions[pipe] = session
        pipe.start(self._loop, self.options.handshake_s)
        return pipe

    def _framing_of_peer(self) -> Framing:
        """Return the framing of the next peer."""
        return self._framing

    def _enter(self, pipe: StreamPipe) -> None:
        self._hub.attach(pipe)
        if pipe.closed:  # the hub has turned it away
            return
        self._hub.welcome(pipe)
        session = self._sessions.get(pipe)
        signed_by = "" if session is None else f", signed with {' and '.join(session.keys)}"
        log.info("%s: connected%s", pipe.name, signed_by, extra={"cause": f"{self.name}: connected"})

    def _first(self, batch: Batch, pipe: StreamPipe) -> None:
        """Handle the first batch of a peer where there are no keys: close it if it begins to sign."""
        pipe.rehome(self._hub.publish, self._enter)
        if begins_with_hello(batch):
            pipe.stats.reject("signed")
            return pipe.close(SIGNS)
        return self._hub.publish(batch, pipe)

    def _join(self, hub: Hub) -> None:
        """Have a hub count what the link misses without peers, and the input of peers that never attach."""
        hub.enlist(self.name, NO_PEER)
        self._enlisted = True
        self._refused = Stats()
        hub.keep(self.name, self._refused)

    def _leave_hub(self) -> None:
        if self._enlisted:
            self._hub.strike(self.name)
            self._hub.fold(self.name, self._refused)
        self._enlisted = False

    def rehome(self, hub: Hub) -> None:
        """Move to another hub with all peers, which notice nothing. Call it between two batches."""
        for pipe in tuple(self.pipes):
            pipe.rehome(hub.publish, self._enter)
            if pipe.ready:
                self._hub.detach(pipe)
                hub.attach(pipe)
        self._leave_hub()
        self._hub = hub
        self._join(hub)

    def _forget(self, pipe: StreamPipe) -> None:
        """Detach a closed pipe from the hub, and note why it closed."""
        self._hub.detach(pipe)
        self.pipes.discard(pipe)
        self._sessions.pop(pipe, None)
        if not pipe.ready:
            self._refused.noise_bytes += pipe.stats.noise_bytes
        for reason, count in pipe.stats.rejected.items() if not pipe.ready else ():
            self._refused.reject(reason, count)
        if pipe.fault:
            self.losses += pipe.ready
            expected = self.peers_leave and pipe.fault in _LEFT
            if not expected:
                self.fault = f"{pipe.name}: {pipe.fault}"
            level, cause = logging.INFO if expected else logging.WARNING, f"{self.name}: {pipe.fault}"
            words = pipe.fault if pipe.fault.startswith("closed") else f"closed: {pipe.fault}"
            log.log(level, "%s: %s", pipe.name, words, extra={"cause": cause, "place": self.name})

    def _woke(self, slept_s: float) -> None:
        """Close the peers: input that came from them and was not read may be too old."""
        for pipe in tuple(self.pipes):
            pipe.close(stood_still(slept_s))

    def close(self) -> None:
        """Stop the link, and close all peers. Idempotent."""
        self._is_open = False
        self._standstill.end()
        for pipe in tuple(self.pipes):
            pipe.close()
        self._leave_hub()


def parse(url: str) -> tuple[int, Any]:
    """Return the family and address of a URL of our streams. Raises `LinkError` that says what is wrong.

    TCP and the schemes on it: (0, (host, port)), host `""` for `*`; IPC: (AF_UNIX, path).
    """
    try:
        parts = split_url(url)
    except ValueError as error:
        raise LinkError(f"{url}: {error}") from error
    if parts.scheme == "ipc":
        return socket.AF_UNIX, parts.path
    if parts.scheme == BEACON:  # such a link is told how to connect
        return 0, (parts.path, 0)
    if parts.scheme not in STREAMS:
        raise LinkError(f"{url}: not an address of a stream: use one of {', '.join(STREAMS)}")
    return 0, ("" if parts.host == "*" else parts.host, parts.port)
