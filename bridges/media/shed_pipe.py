"""Shedding in front of links that queue in batches: TCP and every bus URL, if the settings state a policy.

The link opens on a `ShedHub`, which puts a stage with a `ShedQueue` in front of each pipe. The stage passes
messages on only while the pipe has none queued. So the policy applies to all messages that wait, except
those in the kernel's buffers.
"""

from asyncio import AbstractEventLoop, TimerHandle

from bridges.media.shedding import Shed, ShedQueue, checked
from bridges.media.wire import WiredInside
from bus.hub import Hub, Link, Pipe, Retrying, State, without
from bus.ledger import Stats
from bus.transports.links import BusLink
from bus.vacancy import Filter
from bus.wire.batch import Batch, from_payloads, payloads

_CHUNK_BYTES = 16 * 1024  # passed on at a time; the policy does not apply to these if the peer stops now
_LOOK_S = 0.002  # a pipe does not notify us when it is empty, so look again after this time


class ShedPipe(Pipe):
    """A stage that queues, sheds and rate-limits before `inner`. Its `sent` counts messages passed on."""

    inner: Pipe

    def __init__(self, inner: Pipe, shed: Shed, loop: AbstractEventLoop) -> None:
        self.name, self.link, self.inner, self.stats = inner.name, inner.link, inner, Stats()
        self._queue, self._loop = ShedQueue(self.stats, shed, empty=True), loop
        self._timer: TimerHandle | None = None
        self._closed = False

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        if self._closed:
            return self.stats.drop("closed", batch.count)
        self._queue.put(self._loop.time(), payloads(batch))
        if self._timer is None:
            self._pump()
        return None

    def _pump(self) -> None:
        self._timer = None
        self._queue.expire(self._loop.time())
        while not self._closed and not self.inner.stats.queued and (messages := self._take()):
            self.inner.send(from_payloads(messages))
        if self._queue and not self._closed:
            at_s = max(self._queue.ready_s(), self._loop.time() + _LOOK_S)
            self._timer = self._loop.call_at(at_s, self._pump)

    def _take(self) -> list[bytes]:
        messages, size, now = list[bytes](), 0, self._loop.time()
        while size < _CHUNK_BYTES and (taken := self._queue.take(now)):
            messages.append(taken[1])
            size += len(taken[1])
            self._queue.settle(len(taken[1]))
        return messages

    def revise(self, shed: Shed) -> None:
        """Change to another policy, for all messages that wait."""
        self._queue.revise(shed)
        if self._timer is not None:
            self._timer.cancel()
            self._pump()

    def flush(self) -> None:
        """Pass on all messages that wait, whatever the policy says, because it ends."""
        messages = self._queue.drain()
        if messages:
            self.inner.send(from_payloads(messages))

    def purge(self, reason: str) -> list[bytes]:
        """Drop the messages that wait in `inner` and in this stage, and return them."""
        return self.inner.purge(reason) + self._queue.clear(reason)

    def gone(self) -> None:
        """Drop all waiting messages, because `inner` was detached. Idempotent."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._queue.clear("closed")

    def close(self) -> None:
        self.inner.close()


class ShedHub(Hub):
    """A hub between a link and `hub`. It attaches a `ShedPipe` to `hub` for each pipe of the link.

    The accounts of `hub` include these pipes; this hub has none of its own.
    """

    __slots__ = ("_hub", "_loop", "_shed", "_stages")

    def __init__(self, hub: Hub, shed: Shed, loop: AbstractEventLoop) -> None:
        super().__init__(hub.name)
        self._hub, self._shed, self._loop = hub, shed, loop
        self._stages: dict[int, ShedPipe] = {}

    def attach(self, pipe: Pipe) -> None:
        self.pipes += (pipe,)
        stage = self._stages[id(pipe)] = ShedPipe(pipe, self._shed, self._loop)
        self._hub.attach(stage)

    def detach(self, pipe: Pipe) -> None:
        """Detach a pipe and its stage. Does nothing if the pipe is not attached."""
        self.pipes = without(self.pipes, pipe)
        stage = self._stages.pop(id(pipe), None)
        if stage is not None:
            self._hub.detach(stage)
            stage.gone()

    def enlist(self, link: str, reason: str, filter: Filter | None = None) -> None:
        self._hub.enlist(link, reason, filter)

    def strike(self, link: str) -> None:
        self._hub.strike(link)

    def keep(self, link: str, stats: Stats) -> None:
        self._hub.keep(link, stats)

    def fold(self, link: str, stats: Stats) -> None:
        self._hub.fold(link, stats)

    def revise(self, shed: Shed) -> None:
        """Change to another policy on all stages."""
        self._shed = shed
        for stage in list(self._stages.values()):  # a peer that is found to be gone leaves meanwhile
            stage.revise(shed)

    def flush(self) -> None:
        """Pass on all messages that wait on any stage."""
        for stage in list(self._stages.values()):
            stage.flush()

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        if origin is not None:
            origin.stats.receive(batch)
        self._hub.publish(batch, self._stages.get(id(origin)))


class FrontLink(WiredInside, Retrying):
    """The base of a link in front of `link`, whose address, state, fault and losses are its own."""

    link: BusLink

    @property
    def url(self) -> str:
        return self.link.url

    @property
    def state(self) -> State:
        return self.link.state

    @property
    def condition(self) -> str:
        return self.link.condition

    @property
    def fault(self) -> str:
        return self.link.fault

    @property
    def losses(self) -> int:
        return self.link.losses

    def hurry(self) -> None:
        if isinstance(self.link, Retrying):
            self.link.hurry()

    def close(self) -> None:
        self.link.close()


class ShedLink(FrontLink):
    """A link whose pipes drop messages by the policy `shed`, or none; all else is done by `link`."""

    _hub: Hub
    _loop: AbstractEventLoop

    def __init__(self, link: BusLink, shed: Shed | None) -> None:
        self.name, self.link = link.name, link
        self.shed = None if shed is None else checked(link.name, shed, shed.queue_bytes)
        self._stages: ShedHub | None = None

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        self._hub, self._loop = hub, loop
        self.link.open(self._front(), loop)

    def _front(self) -> Hub:
        """Return the hub for the link: with stages in front of its pipes if there is a policy."""
        self._stages = None if self.shed is None else ShedHub(self._hub, self.shed, self._loop)
        return self._hub if self._stages is None else self._stages

    def revise(self, other: Link) -> bool:
        """Take over the policy of another link to the same place, and its bounds."""
        if not isinstance(other, ShedLink) or not self.link.revise(other.link):
            return False
        before, self.shed = self.shed, other.shed
        if self._stages is not None and self.shed is not None:
            self._stages.revise(self.shed)
        elif before != self.shed:
            self._restage()
        return True

    def _restage(self) -> None:
        """Put stages in front of live pipes, or take them away; messages that wait there go on."""
        if self._stages is not None:
            self._stages.flush()
        self.link.rehome(self._front())

    @property
    def queue_bytes(self) -> int:
        return self.link.queue_bytes if self.shed is None else self.shed.queue_bytes
