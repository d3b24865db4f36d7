"""Frames of a CAN bus to messages: draining a driver, own frames out, a thread where one is needed."""

import contextlib
import logging
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any

from bridges.codecs.can import ANONYMOUS, NODE_MAX, Reassembler, can_id
from bus.hub import Stats

if TYPE_CHECKING:
    from can import BusABC, Message

log = logging.getLogger("buscoupler.bridges")

FRAMES = 256  # read in one wake-up
_ECHOES = 4096  # own frames that may still come back
_ARRIVALS = 65536  # frames that a reader thread may be ahead of the loop
_FAULTS_MAX = 1000  # unreadable inputs in a row before the bus is made anew
_READ_S = 0.05


def error_number(error: BaseException) -> int | None:
    """The errno behind an error of python-can, where there is one."""
    for fault in (error, error.__cause__):
        number = getattr(fault, "error_code", None) or getattr(fault, "errno", None)
        if isinstance(number, int):
            return number
    return None


def drain(
    recv: "Callable[[float], Message | None]", note_fault: Callable[[bool], bool]
) -> "tuple[list[Message], bool, str]":
    """At most 256 frames that are there already; whether more may be; why the bus is lost, or ""."""
    from can import CanError

    frames: list[Message] = []
    for _ in range(FRAMES):
        try:
            frame = recv(0)
        except (CanError, OSError, ValueError) as error:
            # without an errno it is a datagram that is no CAN frame, not a bus that broke
            lost = isinstance(error, OSError) or error_number(error) is not None
            if note_fault(lost):
                return frames, False, f"lost: {error}"
            continue
        if frame is None:
            return frames, False, ""
        frames.append(frame)
    return frames, True, ""


class Inbound:
    """Frames of the bus to messages: own frames out, foreign frames counted, transfers put together.

    Never trusts `is_rx`: udp_multicast sets it on frames that we sent ourselves, and SocketCAN clears it
    on those of other programs of this machine. The node id in the CAN id tells, and `own`, what was sent.
    """

    def __init__(self, name: str, node: int, subject: int, stats: Stats) -> None:
        self.own: deque[bytes] = deque(maxlen=_ECHOES)
        self._name, self._node, self._stats = name, node, stats
        self._identifier = can_id(subject, node)
        self._reassembler = Reassembler(subject, stats.rejected)
        self._faults = 0
        self._warned = False

    def note_fault(self, lost: bool) -> bool:
        """Count input that could not be read; whether the bus is to be given up."""
        self._stats.reject("unreadable")
        self._faults += 1
        return lost or self._faults > _FAULTS_MAX

    def messages(self, now: float, frames: "list[Message]") -> list[bytes]:
        """The messages that `frames` complete, in order."""
        self._faults = 0
        node, feed = self._node, self._reassembler.feed
        found = []
        for frame in frames:
            identifier = frame.arbitration_id
            if not frame.is_extended_id or frame.is_remote_frame or frame.is_error_frame:
                self._stats.reject("foreign")
            elif identifier & NODE_MAX == node and not identifier & ANONYMOUS:
                self._hear_own(identifier, frame.data)
            elif (message := feed(now, identifier, frame.data)) is not None:
                found.append(message)
        return found

    def _hear_own(self, identifier: int, data: bytes | bytearray) -> None:
        if identifier == self._identifier and take_echo(self.own, data):
            return self._stats.reject("echo")
        self._stats.reject("conflict")
        if not self._warned:
            self._warned = True
            log.error("%s: node-ID conflict: another node sends as %d", self._name, self._node)
        return None


def take_echo(own: deque[bytes], data: bytes | bytearray) -> bool:
    """Whether `data` is among the frames sent; if so, it and all before it are forgotten."""
    if own and own[0] == data:
        own.popleft()
        return True
    if data not in own:
        return False
    while own.popleft() != data:
        pass
    return True


class Reader:
    """The thread of an interface without a descriptor: hands frames to the loop, a bounded run at a time."""

    def __init__(
        self,
        bus: "BusABC",
        loop: AbstractEventLoop,
        on_frames: "Callable[[list[Message], int], None]",
        on_lost: Callable[[str], None],
    ) -> None:
        self._bus, self._loop = bus, loop
        self._on_frames, self._on_lost = on_frames, on_lost
        self._arrived: deque[Message] = deque()
        self._lost = 0
        self._called = self._stopped = False
        self._thread = Thread(target=self._run, name="can read", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        faults = 0
        while not self._stopped:
            try:
                frame = self._bus.recv(_READ_S)
            except Exception as error:  # a driver may raise anything
                faults += 1
                if faults > _FAULTS_MAX or error_number(error) is not None or isinstance(error, OSError):
                    return self._call(self._on_lost, f"lost: {error}")
                continue
            faults = 0
            if frame is not None:
                self._take(frame)
        return None

    def _take(self, frame: "Message") -> None:
        if len(self._arrived) >= _ARRIVALS:
            self._lost += 1
            return
        self._arrived.append(frame)
        if not self._called:
            self._called = True
            self._call(self._deliver)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed: nobody is there to be told
            self._loop.call_soon_threadsafe(function, *arguments)

    def _deliver(self) -> None:
        # cleared first: a frame that comes in between calls once too often, never once too few
        self._called = False
        frames = [self._arrived.popleft() for _ in range(min(len(self._arrived), FRAMES))]
        lost, self._lost = self._lost, 0
        self._on_frames(frames, lost)
        if self._arrived and not self._called:
            self._called = True
            self._loop.call_soon(self._deliver)

    def stop(self) -> None:
        self._stopped = True
        self._thread.join(1.0)
