"""The outbox with a spool: a message counts as sent when it is in a file, and goes to the broker from there.

All work on the files is done in one thread, in turns: each writes new messages, forgets those that the broker
has acknowledged, and reads the next ones to publish.
"""

import logging
from asyncio import AbstractEventLoop, Future, TimerHandle
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bridges.media.device import cancel
from bridges.media.shedding import Shed
from bus.ledger import Stats
from buscoupler_mqtt.outbox import Outbox, Publish
from buscoupler_mqtt.spool import Spool, TurnResult

_TURN_BYTES = 256 * 1024
log = logging.getLogger("buscoupler.bridges")
_AGAIN_S = 1.0  # after a fault of the disk, or if the spool is full
_LOOK_S = 5.0  # between two looks whether the files are there, if nothing is to be done


@dataclass(slots=True, eq=False)
class _Flown:
    """A published message. The file forgets it when it and all messages before it are done.

    `dropped` is the reason if the broker did not take it.
    """

    size: int
    done: bool = False
    dropped: str = ""


class Spooled(Outbox[_Flown]):
    """The outbox with a spool. `files` is the ledger of the messages in it: offered when written or found.

    `on_let_go` is called once, when the ledger is final.
    """

    def __init__(
        self,
        stats: Stats,
        files: Stats,
        shed: Shed,
        loop: AbstractEventLoop,
        publish: Publish,
        on_let_go: Callable[[], None],
    ) -> None:
        super().__init__(stats, shed, loop, publish)
        self._files, self._on_let_go = files, on_let_go
        self._order: deque[_Flown] = deque()
        self._left = self._acknowledged = 0  # messages in the files; those among them to forget
        self._rewind = self._turning = self._stopped = self._resting = self._gone = False
        self._looking: TimerHandle | None = None
        self._spool: Spool | None = None
        self._thread = ThreadPoolExecutor(1, "mqtt-spool")

    def use(self, spool: Spool) -> None:
        """Begin to use the files of an open spool."""
        self._spool, self._left = spool, spool.waiting
        self._files.offered += spool.waiting
        self._files.queued += spool.waiting
        self._files.reject("damaged", spool.damaged)
        self._pump()
        self._look()

    def _look(self) -> None:
        """See once in a while whether the files are there, also if nothing is to be done."""
        self._looking = self._loop.call_later(_LOOK_S, self._look)
        if self._spool is not None and not self._turning and not self._resting:
            self._turn(self._spool, [], 0)

    def down(self, blamed: bool) -> None:
        _, culprit = self._flight.down(blamed)
        if culprit is not None:
            self._settle(culprit, "refused")
        self._order.clear()
        self._rewind = True

    def _settle(self, item: _Flown, dropped: str) -> None:
        item.done, item.dropped = True, dropped
        while self._order and self._order[0].done:
            self._count(self._order.popleft())
            self._acknowledged += 1
            self._left -= 1

    def _count(self, flown: _Flown) -> None:
        self._files.queued -= 1
        if flown.dropped:
            return self._files.drop(flown.dropped)
        self._files.sent += 1
        self._files.sent_bytes += flown.size
        return None

    def _pump(self) -> None:
        """Begin a turn if there is work and no turn is under way."""
        if self._turning or self._stopped or self._spool is None:
            return
        new = [] if self._resting else self._take()
        wanted = min(self._flight.room, self._left + len(new) - len(self._order))
        if new or self._acknowledged or wanted > 0:
            self._turn(self._spool, new, max(0, wanted))
        elif self._queue and self._timer is None and not self._resting:
            self._timer = self._loop.call_at(self._queue.ready_s(), self._on_time)

    def _take(self) -> list[tuple[float, bytes]]:
        taken, size, now = list[tuple[float, bytes]](), 0, self._loop.time()
        while size < _TURN_BYTES and (one := self._queue.take(now)) is not None:
            taken.append(one)
            size += len(one[1])
        return taken

    def _turn(self, spool: Spool, new: list[tuple[float, bytes]], wanted: int) -> None:
        messages = [message for _, message in new]
        acknowledged, rewind = self._acknowledged, self._rewind
        self._acknowledged, self._rewind, self._turning = 0, False, True
        future = self._loop.run_in_executor(self._thread, spool.turn, messages, acknowledged, rewind, wanted)
        future.add_done_callback(lambda done: self._turned(new, done))
        if acknowledged:
            self._resting = False  # there may be room again

    def _turned(self, new: list[tuple[float, bytes]], future: "Future[TurnResult]") -> None:
        self._turning = False
        turn = future.result()
        for _, message in new[: turn.written]:
            self._queue.settle(len(message))
            self._files.offered += 1
            self._files.queued += 1
        for came, message in reversed(new[turn.written :]):
            self._queue.put_back(came, message)
        if self._stopped:
            return self._let_go()
        self._left = turn.left - self._acknowledged
        self._files.queued -= turn.damaged
        self._files.drop("damaged", turn.damaged)
        if not self._rewind:  # else the session has ended meanwhile
            self._publish_all(turn.read)
        self._note_gone(turn)
        if turn.fault or turn.full:
            self.condition = turn.fault or "spool full"
            return self._rest()
        if new:
            self.condition = ""
        return self._pump()

    def _note_gone(self, turn: TurnResult) -> None:
        """Note whether the files are there, and say so when that changes."""
        if turn.gone and not self._gone:
            log.error("the spool takes nothing: %s", turn.fault)
        elif self._gone and not turn.fault:
            log.warning("the spool is back, with %d messages", turn.left)
            self.condition = ""
        self._gone = turn.gone or (self._gone and bool(turn.fault))

    def _publish_all(self, messages: list[bytes]) -> None:
        for message in messages:
            flown = _Flown(len(message))
            self._order.append(flown)
            try:
                self._flight.begin(self._publish(message), flown)
            except ValueError as error:
                self._settle(flown, str(error))

    def _rest(self) -> None:
        """Write nothing for `_AGAIN_S`: messages wait in the queue, by its policy."""
        self._resting = True
        cancel(self._timer)
        self._timer = self._loop.call_later(_AGAIN_S, self._on_time)

    def _on_time(self) -> None:
        self._resting = False
        super()._on_time()

    def close(self) -> None:
        """Drop the messages in the queue; those in the files stay. The session must have ended before."""
        self._stopped = True
        cancel(self._timer)
        cancel(self._looking)
        if not self._turning:
            self._let_go()

    def _let_go(self) -> None:
        self._queue.clear("closed")
        self._files.drop("damaged" if self._gone else "kept", self._files.queued)
        self._files.queued = 0
        self._on_let_go()
        if self._spool is not None:
            self._thread.submit(self._spool.turn, [], self._acknowledged, False, 0)
            self._thread.submit(self._spool.close)
        self._thread.shutdown(wait=False)
