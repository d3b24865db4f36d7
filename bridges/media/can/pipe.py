"""The pipe of an open CAN bus: it sends and receives frames, and reacts to the controller's states."""

import logging
from asyncio import Handle
from collections.abc import Sequence
from time import time_ns

from bridges.items import IDENTIFIER, CanFrame
from bridges.media.can.beats import Look, beats_of
from bridges.media.can.direct import DirectSender
from bridges.media.can.medium import Can
from bridges.media.can.outbound import Outbound, SilentSender
from bridges.media.can.pace import Pace
from bridges.media.can.port import Port, Stamped
from bridges.media.can.python_can import BusPort
from bridges.media.can.receive import Reader
from bridges.media.can.restart import Restarter
from bridges.media.can.shared import Shared
from bridges.media.can.state import State
from bridges.media.can.threaded import ThreadSender
from bridges.media.can.voice import Inbound, Voice
from bridges.media.device import OpenPipe, PipeContext, cancel
from bridges.media.shedding import Shed
from bridges.packed import is_own
from bus.wire.batch import Batch, Frames, from_payloads, payloads

log = logging.getLogger("buscoupler.bridges")

# interfaces whose send(timeout=0) returns at once; all others send from a worker thread
_NEVER_BLOCKS = ("socketcan", "udp_multicast", "virtual")
_STATE_S = 1.0


def _sender_of(options: Can) -> type[Outbound]:
    if options.listen_only:
        return SilentSender
    return DirectSender if options.interface in _NEVER_BLOCKS else ThreadSender


class CanPipe(OpenPipe):
    """A pipe to all other nodes on a CAN bus, as one peer. `voice` turns messages into frames, and back."""

    def __init__(
        self, shared: Shared, port: Port, voice: Voice, restarter: Restarter, context: PipeContext
    ) -> None:
        super().__init__(context)
        self._bus, self._port, self._restarter = shared.bus, port, restarter
        self._fd = port.fileno()
        self._is_well = False  # the last read brought frames, and nothing else
        self._reader: Reader | None = None
        self._again: Handle | Look | None = None
        self._beats = beats_of(self._loop)
        self._heard_s = self._loop.time()
        self._found = 0  # frames of a look, which may take several reads
        self._asking: Handle | None = None
        self._pace = Pace(shared.options.gather_ms / 1000 if port.confirms and self._fd is not None else 0)
        self._outbound: Outbound = _sender_of(shared.options)(shared, port, voice, self._loop, self._gone)
        self._inbound: Inbound = voice.hearing(self._outbound.confirm, self._on_error)

    @staticmethod
    def _batch_of(messages: Sequence[bytes]) -> Batch:
        """Return messages, with or without envelope, as a batch."""
        return from_payloads(messages)

    def start(self) -> None:
        if self._fd is not None:
            self._loop.add_reader(self._fd, self._on_readable)
        elif isinstance(self._port, BusPort):
            self._reader = Reader(self._port, self._loop, self._on_arrivals, self._gone)
        self._hub.attach(self)
        self._bus.forget()
        self._ask_state()

    def _on_readable(self) -> None:
        """Read until no frames are left: a driver may buffer frames while the descriptor is not readable."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        frames, more, fault, stamps_ns = self._port.read(self._inbound.note_fault)
        self._note(len(frames), self._inbound.unreadable)
        self._inbound.unreadable = 0
        self._found += len(frames)
        if not self._port.overruns and self._inbound.confirms(frames):
            self._outbound.pump()
        else:
            self._publish(frames, stamps_ns)
        if fault:
            self._gone(fault)
        elif self._closed:
            return
        elif more:
            self._again = self._loop.call_soon(self._on_readable)
        elif self._fd is not None:
            self._look_next(self._fd, frames)

    def _look_next(self, fd: int, frames: Sequence[CanFrame]) -> None:
        """Look again when frames have gathered, if they are those of a stream; else as soon as one comes."""
        is_talk, was_gathering = False, self._pace.is_gathering
        if not is_own(frames):
            is_talk, self._outbound.spoken = self._outbound.spoken, False
        now_s = self._loop.time()
        found, self._found = self._found, 0
        due_s = self._pace.look(now_s, found, is_talk, self._outbound.driver())
        if due_s is not None:
            if not was_gathering:
                self._loop.remove_reader(fd)
            self._look_at(due_s)
        elif was_gathering:
            self._loop.add_reader(fd, self._on_readable)

    def _refill_soon(self) -> None:
        """Read earlier than was meant, because messages wait for room in the driver now."""
        due_s = self._pace.refill_s(self._loop.time())
        if isinstance(self._again, Look) and due_s < self._again.due_s:
            self._again.cancel()
            self._look_at(due_s)

    def _look_at(self, due_s: float) -> None:
        """Look at a time; before others if there is to confirm: then there is room for what others bring."""
        self._again = self._beats.look_at(due_s, self._on_readable, self._outbound.is_flying)

    def _on_arrivals(self, frames: list[Stamped], lost: int, unreadable: int) -> None:
        self._port.overruns += lost
        self.stats.reject("unreadable", unreadable)
        self._note(len(frames), unreadable)
        if self._closed:
            return self.stats.reject("closed", len(frames))
        return self._publish([frame for frame, _ in frames], [stamp_ns for _, stamp_ns in frames])

    def _note(self, frames: int, unreadable: int) -> None:
        """Count what is no CAN frame: in bytes where the interface reads bytes, else by unreadable inputs."""
        was_well, self._is_well = self._is_well, frames > 0 and not unreadable
        heard = self._port.take_heard()
        if heard is None:
            # the watch over what comes knows, if nothing has changed
            return None if was_well and self._is_well else self._heard(unreadable, frames, unreadable)
        self.stats.reject("unreadable", heard.noise_lines)
        self.stats.reject("closed", heard.left)
        self.stats.noise_bytes += heard.noise_bytes
        return self._heard(heard.size, frames, heard.noise_bytes)

    def _publish(self, frames: Sequence[CanFrame], stamps_ns: Sequence[int]) -> None:
        if self._port.overruns:
            self.stats.reject("overrun", self._port.overruns)
            self._port.overruns = 0
        if not frames:
            return
        now_s, heard_s = self._loop.time(), self._heard_s
        self._heard_s = now_s
        waited_s = max(0, time_ns() - stamps_ns[0]) / 1e9 if stamps_ns else 0.0
        messages = self._inbound.messages(now_s, frames, stamps_ns, min(waited_s, now_s - heard_s))
        if messages:
            self.came_ns = self._inbound.came_ns
            self._hub.publish(self._batch_of(messages), self)
            self.came_ns = ()
        if self._port.confirms:
            self._outbound.pump()

    def _on_error(self, frame: CanFrame) -> None:
        """Evaluate an error frame of SocketCAN. Only count others, whose meaning is not defined."""
        bus = self._bus
        if not self._port.confirms:
            return self.stats.reject("error frame")
        overflows, before = bus.rx_overflows, bus.state
        changed = bus.feed(frame[0] & IDENTIFIER, frame[1])
        if bus.rx_overflows > overflows:
            self.stats.reject("overrun")
        if changed:
            self._changed(before)

    def _ask_state(self) -> None:
        """Ask for the state every second, because error frames can be lost and some interfaces send none."""
        state, before = self._port.state(), self._bus.state
        # the carrier shows only whether the controller is bus-off; error frames show more
        known = self._port.confirms and "bus-off" not in (state, before) and before != "unknown"
        if state != "unknown" and not known and self._bus.enter(state):
            self._changed(before)
        if not self._closed and (state != "unknown" or self._port.confirms):
            self._asking = self._loop.call_later(_STATE_S, self._ask_state)

    def _changed(self, before: State) -> None:
        state = self._bus.state
        if before == "unknown" and state == "error-active":
            return
        level = logging.INFO if state == "error-active" else logging.WARNING
        log.log(level, "%s: the controller is %s, was %s", self.name, state, before)
        if state == "bus-off":
            self._on_bus_off()
        elif before == "bus-off":
            self._restarter.recovered()
            self._outbound.resume()

    def _on_bus_off(self) -> None:
        """Restart the controller on SocketCAN. On others end the pipe, so that the bus is opened again."""
        if not self._port.confirms:
            return self._gone("bus-off")
        self._restarter.bus_off()
        return self._outbound.hold("bus off")

    def revise(self, shed: Shed) -> bool:
        self._outbound.revise(shed)
        return True

    def _put(self, batch: Batch) -> None:
        self._outbound.put(payloads(batch), type(batch) is Frames)
        if self._pace.is_gathering and self._outbound.waits:
            self._refill_soon()

    def purge(self, reason: str) -> list[bytes]:
        """Drop waiting messages, also a partly sent one, and return them. Frames in the driver stay."""
        return self._outbound.purge(reason)

    def _end(self, why: str) -> None:
        if self._fd is not None:
            self._loop.remove_reader(self._fd)
        cancel(self._asking)
        if self._again is not None:
            self._again.cancel()
        self._restarter.close()
        self._outbound.close("bus off" if why == "bus-off" else "closed")
        if self._reader is not None:
            self._reader.stop()
        self._port.close()
        self._note(0, 0)
        if why != "bus-off":
            self._bus.forget()
