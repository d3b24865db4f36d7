"""A whole plant in real time: its gateways on a loop in a thread, wires of the kernel where it has them."""

import asyncio
import contextlib
import errno
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine
from pathlib import Path
from struct import Struct
from threading import Thread
from typing import Any, ClassVar, Final, TypeVar

from appliance.simulated.connections import Connections, RealLoop
from appliance.simulated.media import Cable, Cables
from appliance.simulated.members import HubMember, Member, Message, identifier_of, on_wire
from appliance.simulated.plant import SimulatedPlant
from appliance.simulated.wires import PtyLine, RealWire, VirtualCan, virtual_can
from bridges.media.can.medium import Can
from bridges.media.medium import Medium
from bridges.media.uart.medium import Uart
from bridges.simulate import CanWire, SerialLine, SimulationError
from bus.errors import FrameError
from bus.hub import Hub
from topologies.model import Topology
from topologies.wiring.segments import Wiring

T = TypeVar("T")
_HEAD: Final = Struct("=IB3x")  # of a frame of SocketCAN (linux/can.h): identifier, bytes of data
_CLASSIC: Final = Struct("=IB3x8s")
_FD: Final = Struct("=IB3x64s")
_CALL_S: Final = 60.0  # a call on the loop that takes longer hangs
_OPENING_S: Final = 5.0


class RealPlant(SimulatedPlant):
    """All gateways of a topology in real time, as `SimulatedPlant` has them in virtual time.

    They go on between two calls of the test. Serial lines are ptys, without a baud rate. CAN is a virtual
    interface: that of the file's name, or a new one where the kernel and our rights allow it, else a
    simulated bus. `kinds` says which, by the names of wires: `pty`, `vcan` or `simulated`. `wires` are those
    of the kernel.
    """

    START_S: ClassVar = 0.5
    loop: RealLoop

    def __init__(self, file: str | Path | Topology, seed: int = 0) -> None:
        self._thread: Thread | None = None
        self.wires: list[RealWire] = []
        self._start_s = 0.0
        try:
            super().__init__(file, seed)
        except BaseException:
            self._close_wires()
            raise
        self._start_s = self.loop.time()

    def _let_open(self) -> None:
        """Let devices open: threads do that, and what is sent before has nowhere to go."""

        async def opening() -> None:
            end_s = self.loop.time() + _OPENING_S
            while self._is_opening() and self.loop.time() < end_s:
                await asyncio.sleep(0.001)

        self._let(opening())

    def _is_opening(self) -> bool:
        links = (row.link for gateway in self.gateways.values() for row in gateway.watched_links())
        return any(link.state == "opening" for link in links)

    @property
    def now_s(self) -> float:
        """The time since the start of the plant, in seconds."""
        return self.loop.time() - self._start_s

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each wire."""
        cables = zip(self._cables.names(), self._cables.all.values(), strict=True)
        kinds = ((name, cable.wire) for name, cable in cables)
        return {
            name: wire.kind if isinstance(wire, PtyLine | VirtualCan) else "simulated" for name, wire in kinds
        }

    def _new_loop(self, connections: Connections) -> RealLoop:
        loop = RealLoop(connections)
        self._thread = Thread(target=loop.run_forever, name="plant", daemon=True)
        self._thread.start()
        return loop

    def _new_cables(self, wiring: Wiring, seed: int) -> Cables:
        return Cables(wiring, seed, self._wire)

    def _wire(self, medium: Medium, number: int) -> RealWire | None:
        wire: RealWire | None = None
        if isinstance(medium, Uart) and medium.rs485 is None:
            wire = PtyLine()
        elif isinstance(medium, Can):
            wire = virtual_can(str(medium.channel), number)
        if wire is not None:
            self.wires.append(wire)
        return wire

    def _do(self, call: Callable[[], T]) -> T:
        async def done() -> T:
            return call()

        return self._let(done())

    def _let(self, work: Coroutine[Any, Any, T], takes_s: float = 0.0) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(_CALL_S + takes_s)

    def _begin(self) -> None:
        for wire in self.wires:
            wire.open(self.loop)
        super()._begin()

    def _at_wire(self, cable: Cable, options: dict[str, Any], node: int) -> Member:
        wire, spoken = cable.wire, cable.side.speaks is not None
        if isinstance(wire, CanWire | SerialLine):
            return on_wire(wire, spoken, options, node, self._on_heard, self.loop)
        if spoken and isinstance(wire, PtyLine):
            return LineMember(wire, self._on_heard)
        assert cable.side.medium is not None
        if isinstance(wire, VirtualCan) and spoken:
            return InterfaceMember(wire.name, self._on_heard, self.loop)
        hub = Hub("test")
        link = wire.end("test").medium(cable.side.medium).link(node)
        link.open(hub, self.loop)
        return HubMember(hub, self._on_heard, link)

    def _of_end(self, cable: Cable, of: str | None) -> None:
        if of is not None and isinstance(cable.wire, VirtualCan):
            raise SimulationError(
                f"a virtual CAN interface cannot be cut for {of} alone: cut {cable.device} for all"
            )

    def close(self) -> None:
        """Stop everything. Idempotent."""
        if self.loop.is_closed():
            return
        self._do(self._close)
        self.wait(0.01)
        self.loop.call_soon_threadsafe(self.loop.stop)
        if self._thread is not None:
            self._thread.join(_CALL_S)
        self._end_loop()
        self._close_wires()

    def _close_wires(self) -> None:
        for wire in self.wires:
            wire.close()


class LineMember(Member):
    """A device of a test on a line of ptys: each read is a message of its bytes."""

    def __init__(self, line: PtyLine, on_heard: Callable[[], object]) -> None:
        super().__init__(on_heard)
        self._line = line
        line.hears.append(self._hear)

    def _hear(self, data: bytes) -> None:
        self.hear(Message((), data))

    def say(self, message: Message) -> None:
        self._line.write(message.data)

    def close(self) -> None:
        self._line.hears.remove(self._hear)


class InterfaceMember(Member):
    """A node of a test on a CAN interface of the kernel: it sends and hears frames as they are."""

    def __init__(self, interface: str, on_heard: Callable[[], object], loop: AbstractEventLoop) -> None:
        super().__init__(on_heard)
        self._loop = loop
        self._socket = socket.socket(socket.AF_CAN, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.CAN_RAW)
        self._socket.setsockopt(socket.SOL_CAN_RAW, socket.CAN_RAW_FD_FRAMES, 1)
        self._socket.bind((interface,))
        loop.add_reader(self._socket, self._on_readable)

    def _on_readable(self) -> None:
        with contextlib.suppress(OSError):  # nothing more, or the interface is down: it was cut
            while True:
                frame = self._socket.recv(_FD.size)
                identifier, size = _HEAD.unpack_from(frame)
                if not identifier & socket.CAN_ERR_FLAG:
                    is_long = bool(identifier & socket.CAN_EFF_FLAG)
                    number = identifier & (socket.CAN_EFF_MASK if is_long else socket.CAN_SFF_MASK)
                    self.hear(Message((number,), frame[_HEAD.size : _HEAD.size + size]))

    def say(self, message: Message) -> None:
        if len(message.data) > 64:
            raise FrameError(f"{len(message.data)} bytes are no CAN frame: it has 64 at most")
        identifier = identifier_of(message)
        identifier |= socket.CAN_EFF_FLAG if identifier > socket.CAN_SFF_MASK else 0
        layout = _CLASSIC if len(message.data) <= 8 else _FD
        try:
            self._socket.send(layout.pack(identifier, len(message.data), message.data))
        except BlockingIOError:
            raise SimulationError("the interface has no room for one more frame") from None
        except OSError as error:
            if error.errno != errno.ENETDOWN:  # a wire that is cut carries nothing
                raise

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()
