"""A client's connection to the first of its brokers that answers; to an earlier one when that is back."""

import logging
import random
import socket
from asyncio import AbstractEventLoop, Future, Task, TimerHandle
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import inf
from typing import Final

from bus.advice import advised
from bus.backoff import Backoff
from bus.errors import words_of
from bus.ledger import Stats
from bus.serving.connection import Connection, OnObjects
from bus.tmq.address import connect
from bus.tmq.options import Options
from bus.tmq.peer import Peer, PeerOwner, PeerSetup
from bus.tmq.wire import ANSWER, ANSWERED, Address, Hello, Refusal, Tokens, pack_hello
from bus.urls import is_ip

_QUEUE_BYTES = 4 << 20  # every registration that a broker takes from one client
_REFUSALS = 4096
MOVING_S: Final = 0.5
"""A broker that is there answers within this time of the loss of another, also one of 2015."""
log = logging.getLogger("buscoupler.tmq")


class Uplink(PeerOwner):
    """The connection to the broker in use, where this client makes its registrations.

    The name of a broker is looked up each time that it is dialled. `registrations(broker)` returns them all,
    as packets. They are sent again to each broker that the client moves to, and every `refresh_s`. `broker`
    is the address in use, None while none answers; `moves` counts changes, `losses` the brokers that answered
    and then did not; `fault` says why the last one was left. `refusals` are the reasons of the broker in use
    why it refused registrations, by type and tokens. One is forgotten when the broker has answered a
    repetition without refusing it again.
    """

    def __init__(
        self,
        brokers: Sequence[Address],
        options: Options,
        hello: Callable[[Address, int], Hello],
        registrations: Callable[[Address], list[bytes]],
        on_frames: OnObjects,
    ) -> None:
        self.brokers = tuple(brokers)
        self.stats = Stats()
        self.moves = self.losses = 0
        self._lost_s = -inf
        self.fault = ""
        self.refusals: dict[tuple[int, Tokens], str] = {}
        self._refused_now = set[tuple[int, Tokens]]()  # since all was registered for the last time
        self._rounds = 0  # of registering all
        self.up = False
        self._hello = hello
        self._options = replace(options, queue_bytes=max(options.queue_bytes, _QUEUE_BYTES))
        self._registrations, self._on_frames = registrations, on_frames
        self._peer: Peer | None = None
        self._trial: Peer | None = None
        self._at = self._trial_at = 0  # the place in the list of each
        self._dialling: dict[bool, Task[None]] = {}  # the one for a trial is True
        self._pauses = Backoff(options.retry_min_s, options.retry_max_s, random.uniform)
        self._looks = Backoff(options.return_s, options.return_s, random.uniform)
        self._failures = 0
        self._failed = Counter[Address]()  # of each broker, by which the next address of its name is tried
        self._timer: TimerHandle | None = None
        self._refresh_s = self._repeat_s = self._return_s = 0.0
        self._unasked: list[Future[None]] = []
        self._asked: deque[tuple[list[Future[None]], int]] = deque()  # with the round before each question
        self._closed = True

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin to use a loop. Nothing is dialled before."""
        self._loop, self._closed = loop, False

    @property
    def broker(self) -> Address | None:
        return self._peer.address if self._peer is not None and self.up else None

    @property
    def is_moving(self) -> bool:
        """Whether a broker that answered has just been lost, and not all others have been tried since.

        It ends after `MOVING_S`: who is cut off from all of them hears from each only that it timed out.
        """
        is_trying = 0 < self._failures < len(self.brokers)
        return is_trying and self._loop.time() < self._lost_s + MOVING_S

    @property
    def towards(self) -> Address | None:
        """The address of the broker that is told of changes, also while it has not answered yet."""
        return None if self._peer is None else self._peer.address

    @property
    def connection(self) -> Connection | None:
        """The connection to a broker of ours, while there is one."""
        return self._peer.connection if self._peer is not None and self._peer.state == "streaming" else None

    def is_broker(self, connection: Connection) -> bool:
        """Return whether news on a connection can be the broker's.

        One of ours says them on our connection to it. One of 2015 connects to us, from its host.
        """
        if self.connection is not None:
            return connection is self.connection
        return self.is_at_broker(connection)

    def is_at_broker(self, connection: Connection) -> bool:
        """Return whether a connection comes from the host of a broker. One of ours has no way but our
        listener while our connection to it is gone."""
        here, hosts = self.towards, {host for host, _ in self.brokers}
        return connection.host in hosts or (here is not None and connection.host == here[0])

    def say(self, frames: list[bytes]) -> None:
        """Send a change now if a broker listens; `registrations` includes it anyway."""
        if self._peer is not None:
            self._peer.send(*frames)
        elif self.brokers and not self._closed and self._timer is None and False not in self._dialling:
            self._begin(0)

    def settled(self) -> "Future[None]":
        """Return a future, done when a broker has answered all that was sent, and the answer is handled."""
        future: Future[None] = self._loop.create_future()
        if self.brokers and not self._closed:
            self._unasked.append(future)
            self._loop.call_soon(self._ask)  # after what was said has left
        else:
            future.set_result(None)
        return future

    def _ask(self) -> None:
        self._unasked = [future for future in self._unasked if not future.done()]
        peer = self._peer
        outdated = self.refusals.keys() - self._refused_now
        if peer is None or not (self._unasked or outdated):
            return
        if self.connection is not None:
            self.connection.say(pack_hello(self._hello(peer.address, ANSWER)))
            self._asked.append((self._unasked, self._rounds))
            self._unasked = []
        elif self.up and peer.each and not peer.busy:
            finish(self._unasked)
            self._unasked = []

    def _ask_again(self) -> None:
        """Ask the next broker the questions that this one has not answered."""
        self._unasked = [*chain.from_iterable(futures for futures, _ in self._asked), *self._unasked]
        self._asked.clear()

    def _answered(self) -> None:
        """Finish the oldest question. What was not refused again before it is not refused any more."""
        futures, rounds = self._asked.popleft()
        if rounds == self._rounds:
            self.refusals = {key: why for key, why in self.refusals.items() if key in self._refused_now}
        finish(futures)

    def _make(self, address: Address, connected: socket.socket | None) -> Peer:
        hello = partial(self._hello, address)
        setup = PeerSetup(self._loop, self._options, hello, self.stats, self, self._on_frames, answers=True)
        return Peer(address, setup, connected)

    def _register(self, peer: Peer) -> None:
        """Send a greeting and all registrations.

        By the greeting a broker of ours knows whom to look after, however early the connection ends. One of
        2015 ignores it.
        """
        if peer is not self._trial:
            self._refused_now.clear()
            self._rounds += 1
        peer.send(pack_hello(self._hello(peer.address, 0)), *self._registrations(peer.address))

    def _begin(self, number: int) -> None:
        """Dial a broker of the list, to use it."""
        self._timer, self._at = None, number
        self._repeat_s = self._options.heartbeat_s
        self._refresh_s = self._loop.time() + self._repeat_s
        self._reach(number, False)

    def _try(self, number: int) -> None:
        """Dial a better broker, to see whether it answers."""
        self._trial_at = number
        self._reach(number, True)

    def _reach(self, number: int, trial: bool) -> None:
        address = self.brokers[number]
        if is_ip(address[0]):
            return self._meet(address, None, trial)
        task = self._loop.create_task(self._dial(address, trial), name=f"dial {address[0]}")
        self._dialling[trial] = task
        return None

    async def _dial(self, address: Address, trial: bool) -> None:
        """Dial the name of a broker, which has to be told an address of ours on the way to its own."""
        turn, limit_s = self._failed[address], self._options.connect_s
        try:
            sock, found = await connect(self._loop, address, turn, limit_s)
        except OSError as error:
            del self._dialling[trial]
            self._unmet(address, words_of(error), trial)
        else:
            del self._dialling[trial]
            self._meet(found, sock, trial)

    def _unmet(self, address: Address, why: str, trial: bool) -> None:
        if trial:
            self._failed[address] += 1
        else:
            self._move(f"{address[0]}:{address[1]}: {why}")

    def _meet(self, address: Address, connected: socket.socket | None, trial: bool) -> None:
        made = self._make(address, connected)
        if trial:
            self._trial = made
        else:
            self._peer = made
            self.refusals.clear()
        self._register(made)

    def peer_hello(self, peer: Peer, hello: Hello) -> None:
        if peer is self._trial:
            return self._return_to(peer)
        if peer is not self._peer:
            return
        if hello.flags & ANSWERED and self._asked:
            self._answered()
        if not self.up:
            self._is_up(peer)
            self._register(peer)  # now that it knows whom to answer here
            self._loop.call_soon(self._ask)

    def peer_done(self, peer: Peer) -> None:
        if peer is self._trial and peer.each:
            self._return_to(peer)
        elif peer is self._peer and peer.each and peer.state == "idle":
            self._is_up(peer)
            self._ask()

    def _is_up(self, peer: Peer) -> None:
        self._failures = 0
        self._pauses.reset()
        if not self.up:
            self.up = True
            log.info("broker %s %s", peer.name, "takes one packet a connection" if peer.each else "answers")

    def peer_failed(self, peer: Peer, reason: str) -> None:
        if peer is self._trial:
            self._trial = None
            self._failed[self.brokers[self._trial_at]] += 1
            peer.close()
        elif peer is self._peer:
            self._move(f"{peer.name}: {reason}")

    def peer_hindered(self, peer: Peer, reason: str) -> None:
        self.peer_failed(peer, reason)  # nothing else would dial a broker again

    def refused(self, connection: Connection, refusal: Refusal) -> bool:
        """Note what a broker refuses: a registration, or us. Return False if the answer is no broker's."""
        peer = next((p for p in (self._peer, self._trial) if p and p.connection is connection), None)
        if peer is None:
            return False
        if not refusal.kind:
            self.peer_failed(peer, f"refused: {refusal.why}")
        elif peer is self._peer and len(self.refusals) < _REFUSALS:
            self.refusals[refusal.kind, refusal.tokens] = refusal.why
            self._refused_now.add((refusal.kind, refusal.tokens))
        return True

    def peer_lost(self, peer: Peer) -> None:
        if peer is self._peer:
            self._move(f"{peer.name}: connection lost")
        elif peer is self._trial:
            self._trial = None

    def _move(self, why: str) -> None:
        if self._closed:
            return
        self._ask_again()
        if self.up or not self._failures:
            log.warning("broker %s", advised(why))
        if self.up:
            self.losses, self._lost_s = self.losses + 1, self._loop.time()
        self.fault = why
        peer, self._peer, self.up = self._peer, None, False
        if peer is not None:
            peer.close()
        self.moves += 1
        self._failures += 1
        self._failed[self.brokers[self._at]] += 1
        # no pause before the next of the list, and a growing one after each round without an answer
        pause_s = 0.0 if self._failures % len(self.brokers) else self._pauses.next_s()
        self._timer = self._loop.call_later(pause_s, self._begin, (self._at + 1) % len(self.brokers))

    def tick(self, now_s: float) -> None:
        """Show signs of life, repeat registrations, try better brokers. Call it once a heartbeat."""
        peer = self._peer
        for each in (peer, self._trial):
            if each is not None:
                each.tick(now_s)
        if peer is None or peer is not self._peer or not self.up:
            return
        if now_s >= self._refresh_s:
            self._refresh(peer, now_s)
        self._look_back(now_s)

    def _refresh(self, peer: Peer, now_s: float) -> None:
        """Register again, sooner on a younger connection: a middlebox may have closed it for a broker."""
        self._repeat_s = min(2 * self._repeat_s, self._options.refresh_s)
        self._refresh_s = now_s + (self._repeat_s if peer.each else self._options.refresh_s)
        peer.forget()
        self._register(peer)
        self._loop.call_soon(self._ask)  # whether what was refused still is

    def _look_back(self, now_s: float) -> None:
        busy = self._trial is not None or True in self._dialling
        if not self._at or busy or now_s < self._return_s:
            return
        rounds = int(now_s / self._options.return_s)
        self._return_s = now_s + self._looks.next_s()
        self._try(rounds % self._at)

    def _return_to(self, trial: Peer) -> None:
        """Move to an earlier broker, which has all registrations; leave the later one."""
        old, self._trial = self._peer, None
        if old is None:
            return trial.close()
        self._ask_again()
        self.refusals.clear()
        self._peer, self._at = trial, self._trial_at
        self.moves += 1
        log.info("back to broker %s", trial.name)
        old.close()
        self._register(trial)
        self._loop.call_soon(self._ask)

    def close(self) -> None:
        """Disconnect; futures that wait for an answer are cancelled. Idempotent."""
        self._closed, self.up = True, False
        if self._timer is not None:
            self._timer.cancel()
        for task in self._dialling.values():
            task.cancel()
        for peer in (self._peer, self._trial):
            if peer is not None:
                peer.close()
        self._peer = self._trial = None
        self._ask_again()
        for future in self._unasked:
            future.cancel()
        self._unasked = []


def finish(futures: "list[Future[None]]") -> None:
    """Finish futures that are not done."""
    for future in futures:
        if not future.done():
            future.set_result(None)
