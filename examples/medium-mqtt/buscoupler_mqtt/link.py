"""The link to a broker: it connects, and reconnects after a loss. Its pipe is attached all the time."""

import logging
import random
import secrets
from asyncio import AbstractEventLoop, Future, TimerHandle
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from bridges.media.device import cancel
from bridges.media.shedding import Shed, checked
from bus.advice import advised
from bus.backoff import Backoff
from bus.errors import LinkError, words_of
from bus.hub import Hub, Link, State
from buscoupler_mqtt.medium import Mqtt
from buscoupler_mqtt.pipe import MqttPipe
from buscoupler_mqtt.session import BoundedClient, Received, Session, connect, discard
from buscoupler_mqtt.spool import Spool
from buscoupler_mqtt.spooled import Spooled
from buscoupler_mqtt.topics import Topics, widest

log = logging.getLogger("buscoupler.bridges")


class MqttLink:
    """A client of one broker as a link. It is up while the broker has accepted it and its subscriptions.

    `names` are known names of tokens. `mates` is the number of other gateways that run the bridge: with any,
    the link also subscribes to its own topics, so that a standby hears what the active gateway sends. Raises
    `LinkError` for settings that can never work.
    """

    _hub: Hub
    _loop: AbstractEventLoop

    def __init__(
        self,
        options: Mqtt,
        shed: Shed | None = None,
        names: Iterable[int | str] = (),
        mates: int = 0,
        retry_min_s: float = 0.1,
        retry_max_s: float = 10.0,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.options, self.name = options, f"mqtt:{options.device}"
        self.shed = checked(self.name, shed, options.queue_bytes)
        self.topics = Topics([*options.own_names, *names], options.prefix or "", options.levels)
        self.filters = self._filters(bool(mates))
        self.state: State = "closed"
        self.fault = ""
        self.losses = 0
        self.pipe: MqttPipe | None = None
        self._pauses = Backoff(retry_min_s, retry_max_s, jitter)
        self._mark = secrets.token_hex(8)
        self._fresh = True
        self._up_s = 0.0
        self._generation = 0
        self._timer: TimerHandle | None = None
        self._session: Session | None = None

    def _filters(self, mates: bool) -> list[str]:
        wanted = [self.topics.below(one) for one in self.options.subscribe]
        if mates:
            wanted += self.topics.filters_of(self.options.publish)
        try:
            return widest(wanted)
        except ValueError as error:
            raise LinkError(f"{self.name}: {error}") from error

    @property
    def url(self) -> str:
        return self.name

    @property
    def condition(self) -> str:
        """The fault of the spool, or ""."""
        return "" if self.pipe is None else self.pipe.out.condition

    @property
    def queue_bytes(self) -> int:
        return self.shed.queue_bytes

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Begin to open the spool and to connect, without blocking."""
        if self.state != "closed":
            return
        self._hub, self._loop = hub, loop
        self._generation += 1
        self._fresh = True
        self.state = "opening"
        pipe = self.pipe = MqttPipe(self.name, hub, loop, self.options, self.topics, self.shed)
        pipe.start(self._on_pipe_closed)
        self._begin_spool()

    def _begin_spool(self) -> None:
        spool = self.options.spool
        if spool is None:
            return self._begin()
        opening = partial(Spool, spool.directory, spool.bytes, spool.sync)
        future = self._loop.run_in_executor(None, opening)
        future.add_done_callback(partial(self._spool_open, self._generation))
        return None

    def _spool_open(self, generation: int, future: "Future[Spool]") -> None:
        if future.cancelled():
            return
        error = future.exception()
        if generation != self._generation:
            if error is None:
                future.result().close()
        elif error is not None:
            self._wait(f"spool: {words_of(error)}", self._begin_spool)
        elif self.pipe is not None and isinstance(self.pipe.out, Spooled):
            self.pipe.out.use(future.result())
            self._begin()

    def _begin(self) -> None:
        self._timer, self.state = None, "opening"
        future = self._loop.run_in_executor(None, connect, self.options)
        future.add_done_callback(partial(self._connected, self._generation))

    def _connected(self, generation: int, future: "Future[BoundedClient]") -> None:
        if future.cancelled():
            return
        error = future.exception()
        if generation != self._generation:
            if error is None:
                discard(future.result())
        elif error is not None:
            self._wait(words_of(error), self._begin)
        else:
            client = future.result()
            self._session = Session(
                client, self.options, self.filters, self._mark, self._fresh, self, self._loop
            )
            self._session.start()

    def session_up(self, window: int) -> None:
        assert self.pipe is not None
        assert self._session is not None
        self.state, self._up_s, self._fresh = "up", self._loop.time(), False
        log.info("%s: up", self.name)
        self.pipe.up(self._session, window)

    def session_heard(self, messages: list[Received]) -> None:
        if self.pipe is not None:
            self.pipe.hear(messages)

    def session_done(self, packet_id: int, refused: str) -> None:
        if refused:
            log.debug("%s: a message was refused: %s", self.name, refused)
        if self.pipe is not None:
            self.pipe.out.done(packet_id, bool(refused))

    def session_ending(self) -> None:
        if self.pipe is not None:
            self.pipe.out.up(0)

    def session_over(self, why: str, blamed: bool) -> None:
        self._session = None
        if self.pipe is not None:
            self.pipe.down(blamed)
        if self.state == "up":
            self.losses += 1
            if self._loop.time() - self._up_s > self._pauses.pause_s:  # it was not lost at once
                self._pauses.reset()
        self._wait(why, self._begin)

    def _wait(self, why: str, again: Callable[[], None]) -> None:
        if self.fault != why or self.state == "up":
            log.warning("%s: %s; will go on trying", self.name, advised(why))
        self.state, self.fault = "waiting", why
        self._timer = self._loop.call_later(self._pauses.next_s(), again)

    def revise(self, other: Link) -> bool:
        """Take over policy, bound and names of another link. Return False if it differs in more."""
        if not isinstance(other, MqttLink) or other.filters != self.filters:
            return False
        if replace(other.options, queue_bytes=1 << 20) != replace(self.options, queue_bytes=1 << 20):
            return False
        self.options, self.shed, self.topics = other.options, other.shed, other.topics
        if self.pipe is not None:
            self.pipe.topics = self.topics
            self.pipe.out.revise(self.shed)
        return True

    def _on_pipe_closed(self) -> None:
        """Disconnect: the pipe was closed."""
        session, self._session = self._session, None
        if session is not None:
            session.close()
        self.pipe = None
        self.close()

    def close(self) -> None:
        """Disconnect, and close the spool. Idempotent."""
        self._generation += 1
        self.state = "closed"
        self._pauses.reset()
        cancel(self._timer)
        self._timer = None
        if self.pipe is not None:
            self.pipe.close()
