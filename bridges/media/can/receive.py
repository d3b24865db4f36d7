"""Receiving from a CAN bus: our own frames by counted matching, and a reader thread for interfaces without a
descriptor."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from threading import Event, Thread
from time import thread_time

from bridges.media.arrivals import Arrivals
from bridges.media.can.port import FRAMES, Stamped
from bridges.media.can.python_can import BusPort, is_loss, loss
from bridges.media.can.voice import FAULTS_MAX

_ARRIVALS = 65536  # the most frames that wait for the loop; the reader thread drops more
_READ_S = 0.05
_SPIN_S = 0.02  # of processor time in a read that gave nothing: the driver did not wait
_SPINS_MAX = 50  # in a row
_REST_S = 0.2  # after each


class Reader:
    """The reader thread of an interface that may wait. It passes frames to the loop in batches.

    `on_frames(frames, overruns, unreadable)` is called on the loop, also without frames. A driver that spins
    is given little of the processor, and then up.
    """

    def __init__(
        self,
        port: BusPort,
        loop: AbstractEventLoop,
        on_frames: Callable[[list[Stamped], int, int], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._port, self._on_frames, self._on_lost = port, on_frames, on_lost
        self._arrived = Arrivals[Stamped](loop, self._deliver, FRAMES)
        self._overruns = self._unreadable = self._spins = 0
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="can read", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        faults = 0
        while not self._stopped.is_set():
            began_s = thread_time()
            try:
                frame = self._port.receive(_READ_S)
            except Exception as error:  # a driver may raise any exception
                faults += 1
                if faults > FAULTS_MAX or is_loss(error):
                    return self._arrived.call(self._on_lost, self._port.ended or loss(error))
                self._unreadable += 1
                self._arrived.wake()
                continue
            faults = 0
            if frame is not None:
                self._take(frame)
            elif why := self._why_lost(thread_time() - began_s):
                return self._arrived.call(self._on_lost, why)
        return None

    def _take(self, frame: Stamped) -> None:
        self._spins = 0
        if len(self._arrived) >= _ARRIVALS:
            self._overruns += 1
            return
        self._arrived.append(frame)
        if not self._arrived.called:
            self._arrived.announce()

    def _why_lost(self, spent_s: float) -> str:
        """Judge a read that gave nothing and took `spent_s` of processor time. Return "" to go on."""
        self._arrived.wake()
        self._spins = self._spins + 1 if spent_s > _SPIN_S else 0
        if self._spins:
            self._stopped.wait(_REST_S)
        return self._port.ended or (
            "lost: it reads without end, and no frame comes" if self._spins > _SPINS_MAX else ""
        )

    def _deliver(self, frames: list[Stamped]) -> None:
        overruns, self._overruns = self._overruns, 0
        unreadable, self._unreadable = self._unreadable, 0
        self._on_frames(frames, overruns, unreadable)

    def stop(self) -> None:
        """Stop the thread, and hand on what it has read."""
        self._stopped.set()
        self._thread.join(1.0)
        self._arrived.flush()
