"""Receiving from a CAN bus: frames to messages, and a reader thread for interfaces without a descriptor."""

import logging
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from threading import Event, Thread
from time import thread_time

from bridges.media.arrivals import Arrivals
from bridges.media.can.codec import ANONYMOUS, EOT, NODE_MAX, RESERVED, SERVICE, SUBJECT_MAX, Reassembler
from bridges.media.can.port import FRAMES, BusPort, is_loss, loss
from bridges.media.can.shared import Shared
from bridges.media.can.socketcan import ERROR, EXTENDED, FD, IDENTIFIER, KINDS, OWN, Frame
from bridges.media.medium import SEAL_BYTES

log = logging.getLogger("buscoupler.bridges")

_ARRIVALS = 65536  # the most frames that wait for the loop; the reader thread drops more
_FAULTS_MAX = 1000  # unreadable inputs in a row before the bus is opened again
_READ_S = 0.05
_SPIN_S = 0.02  # of processor time in a read that gave nothing: the driver did not wait
_SPINS_MAX = 50  # in a row
_REST_S = 0.2  # after each
_SAME = SERVICE | ANONYMOUS | RESERVED | SUBJECT_MAX << 8 | NODE_MAX  # what two nodes may not share


class Inbound:
    """The receiving half: it removes our own frames, counts foreign ones, and reassembles messages.

    It ignores `is_rx`: udp_multicast sets it on frames that we sent, and SocketCAN clears it on frames of
    other programs on this machine. Our own frames have our node id in the CAN id and either the mark `OWN`,
    if the port confirms frames, or an entry in `own`, the list of frames that we sent.
    """

    def __init__(
        self,
        shared: Shared,
        on_confirmed: Callable[[bytes | bytearray], None],
        on_error: Callable[[int, bytes | bytearray], None],
    ) -> None:
        self._name, self._identifier, self._fd = shared.name, shared.identifier, shared.options.fd
        self._stats, self._own = shared.stats, shared.own
        self._on_confirmed, self._on_error = on_confirmed, on_error
        self._seals, more_bytes = shared.seals, 0 if shared.seals is None else SEAL_BYTES
        self._reassembler = Reassembler(shared.options.subject, shared.stats.rejected, more_bytes)
        self._faults = 0
        self.unreadable = 0  # since it was last set to 0
        self._warned = False

    def note_fault(self) -> bool:
        """Count an unreadable input. Return True after too many in a row."""
        self._stats.reject("unreadable")
        self._faults += 1
        self.unreadable += 1
        return self._faults > _FAULTS_MAX

    def messages(self, now: float, frames: list[Frame]) -> list[bytes]:
        """Return the messages that `frames` complete, in order."""
        self._faults = 0 if frames else self._faults
        ours, fd, feed = self._identifier, self._fd, self._reassembler.feed
        found = []
        for identifier, data, marks in frames:
            if identifier & KINDS != EXTENDED:
                self._no_data_frame(identifier, data)
            elif not (identifier ^ ours) & _SAME:
                self._hear_own(identifier, data, marks)
            elif marks & FD and not fd:
                self._stats.reject("fd on classic")
            elif (message := feed(now, identifier, data)) is not None:
                found.append(message)
        return found if self._seals is None else self._seals.opened(found)

    def _no_data_frame(self, identifier: int, data: bytes | bytearray) -> None:
        if identifier & ERROR:
            self._on_error(identifier & IDENTIFIER, data)
        else:
            self._stats.reject("foreign")

    def _hear_own(self, identifier: int, data: bytes | bytearray, marks: int) -> None:
        if marks & OWN:
            return self._on_confirmed(data)
        if identifier & IDENTIFIER == self._identifier and take_echo(self._own, data):
            return self._stats.reject("echo") if data and data[-1] & EOT else None  # once for a message
        self._stats.reject("conflict")
        if not self._warned:
            self._warned = True
            node = self._identifier & NODE_MAX
            log.error("%s: node-ID conflict: another node sends as %d", self._name, node)
        return None


def take_echo(own: deque[bytes], data: bytes | bytearray) -> bool:
    """Return whether `data` is in the list of sent frames. If so, remove it and all frames before it."""
    if own and own[0] == data:
        own.popleft()
        return True
    if data not in own:
        return False
    while own.popleft() != data:
        pass
    return True


class Reader:
    """The reader thread of an interface that may wait. It passes frames to the loop in batches.

    `on_frames(frames, overruns, unreadable)` is called on the loop, also without frames. A driver that spins
    is given little of the processor, and then up.
    """

    def __init__(
        self,
        port: BusPort,
        loop: AbstractEventLoop,
        on_frames: Callable[[list[Frame], int, int], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._port, self._on_frames, self._on_lost = port, on_frames, on_lost
        self._arrived = Arrivals[Frame](loop, self._deliver, FRAMES)
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
                if faults > _FAULTS_MAX or is_loss(error):
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

    def _take(self, frame: Frame) -> None:
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

    def _deliver(self, frames: list[Frame]) -> None:
        overruns, self._overruns = self._overruns, 0
        unreadable, self._unreadable = self._unreadable, 0
        self._on_frames(frames, overruns, unreadable)

    def stop(self) -> None:
        """Stop the thread, and hand on what it has read."""
        self._stopped.set()
        self._thread.join(1.0)
        self._arrived.flush()
