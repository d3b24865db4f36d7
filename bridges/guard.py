"""A guard at an address of a bus: it admits listed peers, and passes what each may send and hear.

The link opens on a `GuardedHub`, which puts a stage in front of each pipe. Without a list there is no guard.
"""

import logging
from collections.abc import Sequence

from bridges.permits import REASON, Permit
from bus.hub import Hub, Pipe, without
from bus.ledger import Stats
from bus.transports.peers import Peer
from bus.transports.stream import StreamPipe
from bus.vacancy import Filter
from bus.wire.batch import Batch

log = logging.getLogger("buscoupler.bridges")


class GuardedPipe(Pipe):
    """A stage in front of `inner`. Its `sent` counts the messages that it handed on."""

    __slots__ = ("_hear", "_send", "_warned", "inner", "link", "name", "stats")

    inner: Pipe

    def __init__(self, inner: Pipe, peer: Peer) -> None:
        self.name, self.link, self.inner, self.stats = inner.name, inner.link, inner, Stats()
        self._send, self._hear = Permit(peer.send), Permit(peer.hear)
        self._warned = False

    @property
    def hears_all(self) -> bool:
        """Whether the peer may hear everything."""
        return self._hear.is_open

    def send(self, batch: Batch) -> None:
        """Hand on the messages that the peer may hear."""
        self.stats.offered += batch.count
        out = self._hear.permitted(batch)
        if out is None:
            return self.stats.drop(REASON, batch.count)
        if out is not batch:
            self.stats.drop(REASON, batch.count - out.count)
        self.stats.sent += out.count
        self.stats.sent_bytes += len(out.data)
        return self.inner.send(out)

    def admitted(self, batch: Batch) -> Batch | None:
        """Return the messages that the peer may send; count the others, and log that once."""
        self.inner.stats.receive(batch)
        out = self._send.permitted(batch)
        if out is not batch:
            self.stats.reject(REASON, batch.count - (out.count if out else 0))
            self._tell()
        return out

    def _tell(self) -> None:
        if not self._warned:
            cause = {"cause": f"{self.link}: may not send"}
            log.warning("%s: dropped what it may not send; others are only counted", self.name, extra=cause)
        self._warned = True

    def purge(self, reason: str) -> list[bytes]:
        return self.inner.purge(reason)

    def close(self) -> None:
        self.inner.close()


class GuardedHub(Hub):
    """A hub between a link and `hub`. It attaches a `GuardedPipe` to `hub` for each peer on the list.

    The accounts of `hub` include these pipes; this hub has none of its own. Other peers are turned away.
    """

    __slots__ = ("_hub", "_peers", "_stages")

    def __init__(self, hub: Hub, peers: Sequence[Peer]) -> None:
        super().__init__(hub.name)
        self._hub, self._peers = hub, tuple(peers)
        self._stages: dict[Pipe, GuardedPipe] = {}

    def attach(self, pipe: Pipe) -> None:
        """Attach a peer that is on the list; turn others away."""
        assert isinstance(pipe, StreamPipe)
        who = pipe.identity()
        peer = next((peer for peer in self._peers if peer.fits(who)), None)
        if peer is None:
            known = ", ".join(map(ascii, who.names or (who.host,)))
            cause = {"cause": f"{pipe.link}: not on the list"}
            log.warning("%s: turned away: %s is not on the list of peers", pipe.name, known, extra=cause)
            return pipe.close()
        self.pipes += (pipe,)
        stage = self._stages[pipe] = GuardedPipe(pipe, peer)
        return self._hub.attach(stage)

    def detach(self, pipe: Pipe) -> None:
        """Detach a pipe and its stage. It is no error if the pipe is not attached."""
        self.pipes = without(self.pipes, pipe)
        stage = self._stages.pop(pipe, None)
        if stage is not None:
            self._hub.detach(stage)

    def enlist(self, link: str, reason: str, filter: Filter | None = None) -> None:
        self._hub.enlist(link, reason, filter)

    def strike(self, link: str) -> None:
        self._hub.strike(link)

    def keep(self, link: str, stats: Stats) -> None:
        """Add counts of no pipe to the accounts of the hub behind."""
        self._hub.keep(link, stats)

    def fold(self, link: str, stats: Stats) -> None:
        self._hub.fold(link, stats)

    def welcome(self, pipe: Pipe) -> None:
        self._hub.welcome(self._stages[pipe])

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Publish the messages that a peer may send."""
        stage = None if origin is None else self._stages.get(origin)
        admitted = None if stage is None else stage.admitted(batch)
        if admitted is not None:
            self._hub.publish(admitted, stage)
