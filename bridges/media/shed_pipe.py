"""Shedding in front of links that queue in batches: TCP and every bus URL, if the settings state a policy.

The link opens on a `ShedHub`, which puts a stage with a `ShedQueue` in front of each pipe. The stage passes
messages on only while the pipe has none queued. So the policy applies to all messages that wait, except
those in the kernel's buffers.
"""

from asyncio import AbstractEventLoop, TimerHandle

from bridges.media.shedding import Shed, ShedQueue, checked
from bus.hub import Hub, Link, Pipe, State, without
from bus.ledger import Stats
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

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        if origin is not None:
            origin.stats.receive(batch)
        self._hub.publish(batch, self._stages.get(id(origin)))


class ShedLink:
    """A link whose pipes drop messages by the policy `shed`. All else is delegated to `link`."""

    def __init__(self, link: Link, shed: Shed) -> None:
        self.name, self._link = link.name, link
        self.shed = checked(link.name, shed, shed.queue_bytes)

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        self._link.open(ShedHub(hub, self.shed, loop), loop)

    def close(self) -> None:
        self._link.close()

    @property
    def url(self) -> str:
        return self._link.url

    @property
    def state(self) -> State:
        return self._link.state

    @property
    def condition(self) -> str:
        return self._link.condition

    @property
    def fault(self) -> str:
        return self._link.fault

    @property
    def losses(self) -> int:
        return self._link.losses

    @property
    def queue_bytes(self) -> int:
        return self.shed.queue_bytes


def staged(link: Link, shed: Shed | None) -> Link:
    """Return `link` with shedding in front of its pipes, or `link` itself if `shed` is None."""
    return link if shed is None else ShedLink(link, shed)
