"""The base class of links that open one device: they open it in a worker thread, and again after a loss."""

import logging
import random
import time
from asyncio import AbstractEventLoop, Future, Handle, TimerHandle
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from functools import partial
from importlib import import_module
from math import inf
from typing import Generic, NamedTuple, TypeVar

from bridges.media.seals import WORDS, Seals, is_message
from bridges.media.shedding import Shed, checked
from bridges.media.wire import Wired, WireTap
from bus.advice import advised
from bus.backoff import Backoff
from bus.errors import LinkError, words_of
from bus.extras import lacking
from bus.hub import Hub, Link, Pipe, Retrying, State
from bus.input import InputWatch
from bus.keys import Keyring
from bus.ledger import Stats
from bus.machine.openings import openings_of
from bus.machine.wake_hook import Standstill, stood_still
from bus.noise import Ear
from bus.text import plain
from bus.vacancy import NO_DEVICE, Filter
from bus.wire.batch import Batch

log = logging.getLogger("buscoupler.bridges")

D = TypeVar("D")


class PipeContext(NamedTuple):
    """The environment of a pipe. The pipe calls `on_close(why)` once, when it has ended.

    It calls `heard(size, messages, noise, sample)` for what comes, as `InputWatch.hear` has it. A pipe with a
    protocol shows its items to `wire`.
    """

    name: str
    stats: Stats
    hub: Hub
    loop: AbstractEventLoop
    on_close: Callable[[str], None]
    heard: Callable[..., None] = lambda size, messages, noise, sample=b"": None
    wire: WireTap = WireTap()


class OpenPipe(Pipe):
    """The base class of pipes that own one open device. It ends only once, and then drops all messages.

    A medium overrides `start`, `_put` and `_end`. It calls `_gone(why)` when the device is lost.
    """

    def __init__(self, context: PipeContext) -> None:
        self.name, self.stats, self._hub, self._loop, self._on_close, self._heard, self._wire = context
        self.link = self.name
        self._closed = False

    def start(self) -> None:
        """Start reading and attach the pipe to the hub. Raises `OSError` if the device cannot be used."""
        raise NotImplementedError

    def _put(self, batch: Batch) -> None:
        """Send, queue or drop each message of `batch`, already counted as offered. Never blocks or raises."""
        raise NotImplementedError

    def _end(self, why: str) -> None:
        """Stop timers, readers and writers, drop queued messages as `closed`, and close the device."""
        raise NotImplementedError

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        if self._closed:
            return self.stats.drop("closed", batch.count)
        return self._put(batch)

    def revise(self, shed: Shed) -> bool:
        """Use another shed policy. Return False if that takes a new opening, as for most pipes."""
        return False

    def close(self) -> None:
        self._gone("closed")

    def lose(self, why: str) -> None:
        """Release the device as if it had been lost. Idempotent."""
        self._gone(why)

    def _gone(self, why: str) -> None:
        """End the pipe and tell its link why. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._hub.detach(self)
        self._end(why)
        self._on_close(why)


def _elapsed_s() -> float:
    """Return the seconds since the machine booted, also while it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def need(name: str, library: str, package: str, extra: str) -> None:
    """Check that `library`, a part of `package`, can be imported. Raises `LinkError` if not."""
    try:
        import_module(library)
    except ImportError as error:
        raise LinkError(lacking(name, package, extra)) from error


def preload(library: str) -> None:
    """Import a library, if it is there, so that opening a link on the event loop need not."""
    with suppress(ImportError):
        import_module(library)


def cancel(*timers: Handle | None) -> None:
    """Cancel the timers that are not None."""
    for timer in timers:
        if timer is not None:
            timer.cancel()


class Alarm:
    """A timer that calls `ring` once, at a time that may change until then.

    A time that is put off costs nothing: the timer that runs looks again. What holds for a message that is
    passed on just now (`bus.passing`) does not hold for what the call does.
    """

    __slots__ = ("_due_s", "_ring", "_timer")

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring, self._due_s = ring, inf
        self._timer: TimerHandle | None = None

    def set(self, loop: AbstractEventLoop, due_s: float) -> None:
        """Call at `due_s` of the loop's clock, whatever was set before; infinite: not at all."""
        if self._timer is not None and self._timer.when() > due_s:
            self.cancel()
        self._due_s = due_s
        if due_s < inf and self._timer is None:
            self._timer = Context().run(loop.call_at, due_s, self._on_time, loop, due_s)

    def _on_time(self, loop: AbstractEventLoop, when_s: float) -> None:
        self._timer = None
        if self._due_s <= when_s:
            self._due_s = inf
            self._ring()
        else:
            self.set(loop, self._due_s)

    def cancel(self) -> None:
        """Cancel the call. Idempotent."""
        self._due_s = inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class DeviceLink(Wired, Retrying, Generic[D]):
    """A link that keeps one device open. It opens a lost device again after growing pauses with jitter.

    Without `shed`, new messages are dropped when more than `queue_bytes` would wait, and messages that waited
    longer than `age_s` are dropped too. `shed` replaces this policy. `losses` counts how often an open device
    was lost. `stats` continues from one opening to the next. A medium that can describe its state overrides
    `condition`, and one whose noise is not in bytes `ear`. With `keys` sent messages are sealed; a medium
    that signs uses `seals`. `clock` gives the time for them, in seconds since 1970. If the process stood
    still for more than `held_s`, the device is opened anew, so that nothing is read that came meanwhile; 0:
    never.
    """

    _hub: Hub
    _loop: AbstractEventLoop

    def __init__(
        self,
        name: str,
        shed: Shed | None = None,
        queue_bytes: int = Shed().queue_bytes,
        age_s: float | None = None,
        retry_min_s: float = 0.1,
        retry_max_s: float = 10.0,
        jitter: Callable[[float, float], float] = random.uniform,
        keys: Keyring | None = None,
        clock: Callable[[], float] = time.time,
        held_s: float = 0.0,
    ) -> None:
        if not 0 < retry_min_s <= retry_max_s:
            raise LinkError(f"{name}: retry_min_s must be above 0 and at most retry_max_s")
        self.name, self.shed = name, checked(name, shed, queue_bytes, age_s)
        self.state: State = "closed"
        self.fault = ""
        self.losses = 0
        self.stats, self.wire_tap = Stats(), WireTap()
        self.seals = None if keys is None else self._make_seals(keys, clock)
        self.pipe: OpenPipe | None = None
        self._input = InputWatch(name, self.ear)
        self._pauses = Backoff(retry_min_s, retry_max_s, jitter)
        self._up_s = 0.0
        self._generation = 0
        self._timer: TimerHandle | None = None
        self._standstill, self.held_s = Standstill(self._woke), held_s

    def _make_seals(self, keys: Keyring, clock: Callable[[], float]) -> Seals:
        purpose, sender = self.name.partition(":")[0], random.SystemRandom().getrandbits(32)
        return Seals(
            keys, purpose, sender, clock, self.stats.rejected, self._tell, _elapsed_s, self._is_plain
        )

    def _is_plain(self, data: bytes) -> bool:
        """Tell whether these bytes, as the medium carries them, are a message without a seal."""
        return is_message(data)

    def _tell(self, reason: str) -> None:
        """Log the first message that does not verify; the others are counted."""
        log.warning("%s: rejected a message: %s; others are only counted", self.name, WORDS[reason])

    @property
    def url(self) -> str:
        return self.name

    @property
    def ear(self) -> Ear:
        """The input of the medium as its noise shows."""
        return Ear()

    @property
    def condition(self) -> str:
        return self._input.words if self.state == "up" else ""

    @property
    def queue_bytes(self) -> int:
        return self.shed.queue_bytes

    def revise(self, other: Link) -> bool:
        """Take over the shed policy, the keys and `held_s` of another link to this device.

        To begin to sign, or to stop it, takes a new opening.
        """
        if not isinstance(other, DeviceLink) or (self.seals is None) != (other.seals is None):
            return False
        if self.seals is not None and other.seals is not None:
            self.seals.rekey(other.seals.ring)
        self.shed, self.held_s = other.shed, other.held_s
        if self.state != "closed":
            self._standstill.watch(self._loop, self.held_s)
        return self.pipe is None or self.pipe.revise(self.shed)

    def _open_device(self) -> D:
        """Open the device and return it. Runs in a worker thread: it may block and raise any exception."""
        raise NotImplementedError

    def _release(self, device: D) -> None:
        """Close an open device. Never raises."""
        raise NotImplementedError

    def _make_pipe(self, device: D, context: PipeContext) -> OpenPipe:
        """Return a pipe in `context` that owns `device`."""
        raise NotImplementedError

    def _missing(self) -> Filter | None:
        """Return what is done with messages while there is no device, as `Vacancy` has it."""
        return None

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start to open the device. Returns at once."""
        self._standstill.watch(loop, self.held_s)
        if self.state == "closed":
            self._hub, self._loop = hub, loop
            hub.enlist(self.name, NO_DEVICE, self._missing())
            self._generation += 1
            self._begin()

    def _begin(self) -> None:
        self._timer = None
        self.state = "opening"
        generation = self._generation
        future = openings_of(self._loop).run(partial(self._open_current, generation))
        future.add_done_callback(partial(self._begun, generation))

    def _open_current(self, generation: int) -> D | None:
        if generation != self._generation:  # the link was closed before its turn
            return None
        device = self._open_device()
        if generation == self._generation:
            return device
        self._release(device)
        return None

    def _begun(self, generation: int, future: "Future[D | None]") -> None:
        if future.cancelled():
            return
        error = future.exception()
        if generation != self._generation:
            if error is None and (device := future.result()) is not None:
                self._release(device)
        elif error is not None:
            self._wait(words_of(error))
        elif (device := future.result()) is not None:
            self._go_up(device)

    def _go_up(self, device: D) -> None:
        on_close = partial(self._lost, self._generation)
        self._input.open(self._loop)
        try:
            heard = self._input.hear
            context = PipeContext(
                self.name, self.stats, self._hub, self._loop, on_close, heard, self.wire_tap
            )
            self.pipe = self._make_pipe(device, context)
        except OSError as error:
            self._release(device)
            return self._wait(words_of(error))
        self.state, self._up_s = "up", self._loop.time()
        try:
            self.pipe.start()
        except OSError as error:
            self._cannot_start(words_of(error))
        else:
            log.info("%s: up", self.name)

    def _cannot_start(self, why: str) -> None:
        """Try again later, because the path is a regular file or the device was unplugged meanwhile."""
        self._generation += 1  # so that closing its pipe does not count as a loss
        if self.pipe is not None:
            self.pipe.close()
        self.state = "opening"
        self._wait(why)

    def _lost(self, generation: int, why: str) -> None:
        self.pipe = None
        if generation != self._generation:
            return
        self.losses += 1
        if self._loop.time() - self._up_s > self._pauses.pause_s:  # it was not lost at once
            self._pauses.reset()
        self._wait(why)

    def _wait(self, why: str) -> None:
        why = plain(" ".join(why.split()))  # a driver may quote what came
        if self.fault != why or self.state == "up":
            log.warning("%s: %s; will go on trying", self.name, advised(why))
        self.state, self.fault = "waiting", why
        self._timer = self._loop.call_later(self._pauses.next_s(), self._begin)

    def hurry(self) -> None:
        """Open a device at once that could not be opened, and again after the shortest pauses."""
        self._pauses.reset()
        if self.state == "waiting" and self._timer is not None:
            self._timer.cancel()
            self._begin()

    def _woke(self, slept_s: float) -> None:
        """Release the device: input that came by it meanwhile, and was not read, is too old."""
        if self.pipe is not None:
            self.pipe.lose(stood_still(slept_s))

    def close(self) -> None:
        """Stop the link and close the device. Idempotent."""
        self._standstill.end()
        self._input.close()
        self._generation += 1
        was, self.state = self.state, "closed"
        self._pauses.reset()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.pipe is not None:
            self.pipe.close()
        if was != "closed":
            self._hub.strike(self.name)
