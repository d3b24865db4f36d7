"""Makers of the media without streams' guarantees, as this machine has them: ptys, loopback, memory."""

import asyncio
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bridges.can import CanLink
from bridges.codecs.can import can_id, segment
from bridges.codecs.datagram import Encoder
from bridges.codecs.mailbox import Target
from bridges.codecs.uart import encode
from bridges.i2c import I2cLink
from bridges.i2c_adapter import open_adapter
from bridges.i2c_memory import MemoryAdapter
from bridges.multicast import MulticastLink
from bridges.rs485 import Rs485Link
from bridges.simulate import I2cTarget, Rs485Node
from bridges.uart import UartLink
from bus.batch import from_payloads
from tests.bridges.support import PtyPair, frame, until
from tests.conformance.pair import Maker, Pair, Relay, Side, free_port, noise

_RETRY: dict[str, Any] = {"retry_min_s": 0.01, "retry_max_s": 0.1}
_BAUD = 3_000_000
_CAN_GROUP, _GROUP = "239.74.163.9", "239.255.91.9"
_CLOGGED = "test_a_clogged_peer_stalls_nobody_and_each_drop_is_counted"
_GARBAGE = "test_garbage_then_the_next_frame_but_one_at_the_latest"


def _write(fd: int, data: bytes) -> int:
    return os.write(fd, data) if data else 0


class Ptys:
    """Two pseudo-terminals with a null modem between them."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.relay = Relay(asyncio.get_running_loop())
        self.near, self.far = PtyPair(path / "near"), PtyPair(path / "far")
        for line in (self.near, self.far):
            self.wire(line)

    def wire(self, line: PtyPair) -> None:
        fd = line.master
        self.relay.join(fd, line.read, partial(_write, fd))

    def unplug(self, line: PtyPair) -> None:
        self.relay.leave(line.master)
        line.unplug()
        line.path.unlink()

    def plug(self, line: PtyPair) -> None:
        line.plug()
        self.wire(line)

    def close(self) -> None:
        self.relay.close()
        self.near.close()
        self.far.close()


def uart(path: Path, clogged: bool = False) -> Pair:
    ptys = Ptys(path)
    queue_bytes = 16384 if clogged else 1 << 20
    limits = {"baud": _BAUD, "queue_bytes": queue_bytes, "ahead_ms": 1000, **_RETRY}
    near, far = (
        Side(line.path.name, partial(UartLink, str(line.path), **limits)) for line in (ptys.near, ptys.far)
    )

    async def garbage() -> None:
        ptys.relay.inject(ptys.near.master, noise(5000))

    async def cut() -> None:
        ptys.relay.inject(ptys.near.master, encode(frame(3000))[:1500])
        await asyncio.sleep(0)
        ptys.unplug(ptys.near)
        await until(lambda: not near.up)

    async def mend() -> None:
        ptys.plug(ptys.near)

    near.open()
    far.open()
    clog = partial(ptys.relay.stop_reading, ptys.near.master)
    return Pair(near, far, clog, garbage, cut, mend, closers=[ptys.close])


class Server:
    """A server on TCP that hands what each client says on to all others."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.relay, self._loop = Relay(loop), loop
        self.clients: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        loop.add_reader(self._socket, self._on_client)
        self.port = int(self._socket.getsockname()[1])

    def _on_client(self) -> None:
        sock, _ = self._socket.accept()
        sock.setblocking(False)
        for gone in [client for client in self.clients if client.fileno() not in self.relay.members]:
            self.clients.remove(gone)
            gone.close()
        self.clients.append(sock)
        self.relay.join(sock.fileno(), partial(sock.recv, 65536), partial(_send, sock))

    def drop(self, sock: socket.socket) -> None:
        self.relay.leave(sock.fileno())
        self.clients.remove(sock)
        sock.close()

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self.relay.close()
        for sock in self.clients:
            sock.close()


def _send(sock: socket.socket, data: bytes) -> int:
    return sock.send(data) if data else 0


def uart_socket(_: Path, clogged: bool = False) -> Pair:
    """A serial server: both ends are clients of it; the first to come is `near`."""
    server = Server()
    url = f"socket://127.0.0.1:{server.port}"
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, **_RETRY}
    near, far = (Side(name, partial(UartLink, url, **limits)) for name in ("near", "far"))
    return _served(server, near, far, encode(frame(3000))[:1500])


def _served(server: Server, near: Side, far: Side, half: bytes) -> Pair:
    near.open()
    closers = [server.close]

    def ready() -> bool:
        if near.up and server.clients and far.link is None:
            far.open()
        return len(server.relay.members) == 2

    def first() -> socket.socket:
        return server.clients[0]

    async def garbage() -> None:
        server.relay.inject(first().fileno(), noise(5000))

    async def cut() -> None:
        server.relay.inject(first().fileno(), half)
        server.drop(first())
        await until(lambda: not near.up)

    async def mend() -> None:
        await until(lambda: len(server.clients) == 2)
        server.clients.reverse()  # near came back last

    def clog() -> None:
        server.relay.stop_reading(first().fileno())

    return Pair(near, far, clog, garbage, cut, mend, ready, closers)


def slcan(_: Path, clogged: bool = False) -> Pair:
    """The driver of USB adapters, its serial line replaced by the server."""
    server = Server()
    url, options = f"socket://127.0.0.1:{server.port}", {"sleep_after_open": 0}
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "age_ms": 60_000, **_RETRY}
    near, far = (
        Side(name, partial(CanLink, "slcan", url, node, options=options, **limits))
        for node, name in enumerate(("near", "far"), 1)
    )
    lines = [f"T{can_id(0x1234, 2):08X}8{data.hex()}\r" for data in segment(frame(500), 30)]
    return _served(server, near, far, "".join(lines[: len(lines) // 2]).encode() + b"T10")


def can(_: Path, interface: str, channel: str, fd: bool) -> Pair:
    """Near and far are nodes 1 and 2; a stranger, node 9, misbehaves."""
    from can import Bus

    options: dict[str, Any] = {}
    if interface == "udp_multicast":
        options = {"port": free_port(socket.SOCK_DGRAM), "hop_limit": 0}
    limits = {"queue_bytes": 1 << 20, "age_ms": 60_000, **_RETRY}
    near, far = (
        Side(name, partial(CanLink, interface, channel, node, fd=fd, options=options, **limits))
        for node, name in enumerate(("near", "far"), 1)
    )
    stranger = Bus(channel=channel, interface=interface, ignore_config=True, fd=fd, **options)

    def send(*frames: bytes) -> None:
        from can import Message

        for data in frames:
            stranger.send(Message(arbitration_id=can_id(0x1234, 9), data=data, is_fd=len(data) > 8))

    async def garbage() -> None:
        known = sum(near.reasons("rejected").values())
        send(*(noise(8, seed) for seed in range(50)))
        if options:
            _to_group(channel, options["port"], noise(50), b"", b"\x93\x01\x02\x03")
        await until(lambda: sum(near.reasons("rejected").values()) > known + 20)

    half = segment(frame(500), 3, fd)

    async def cut() -> None:
        send(*half[: len(half) // 2])

    async def mend() -> None:
        send(*segment(frame(200), 4, fd))

    near.open()
    far.open()
    pair = Pair(near, far, garbage=garbage, cut=cut, mend=mend, back=[frame(200)])
    pair.closers.append(stranger.shutdown)
    return pair


def _to_group(group: str, port: int, *datagrams: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        for datagram in datagrams:
            sock.sendto(datagram, (group, port))


def multicast(_: Path) -> Pair:
    port = free_port(socket.SOCK_DGRAM)
    near, far = (
        Side(name, partial(MulticastLink, _GROUP, port, "lo", queue_bytes=1 << 20, **_RETRY))
        for name in ("near", "far")
    )

    async def garbage() -> None:
        known = sum(near.reasons("rejected").values())
        _to_group(_GROUP, port, *(noise(seed * 7, seed) for seed in range(50)))
        await until(lambda: sum(near.reasons("rejected").values()) >= known + 40)

    async def cut() -> None:
        _to_group(_GROUP, port, Encoder(1400, 7, 7).encode(from_payloads([frame(3000)]))[0][0])

    async def mend() -> None:
        made = Encoder(1400, 7, 8).encode(from_payloads([frame(2000)]))
        _to_group(_GROUP, port, *(datagram for datagram, _ in made))

    near.open()
    far.open()
    return Pair(near, far, garbage=garbage, cut=cut, mend=mend, back=[frame(2000)])


class MasterPort:
    """The master of a pty as a node's port."""

    def __init__(self, line: PtyPair) -> None:
        self._line, self._fd = line, line.master

    def fileno(self) -> int:
        return self._fd

    def read(self) -> bytes:
        return self._line.read()

    def write(self, data: bytes) -> int:
        try:
            return _write(self._fd, data)
        except BlockingIOError:
            return 0

    def waiting(self) -> int:
        return 0

    def close(self) -> None:
        """The pty is closed by itself."""


def rs485(path: Path, clogged: bool = False) -> Pair:
    """The master on a pty, a node on the other side of it."""
    path.mkdir()
    loop, line = asyncio.get_running_loop(), PtyPair(path / "pair")
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "answer_ms": 5000, "idle_ms": 0, **_RETRY}
    near = Side("near", partial(Rs485Link, str(line.path), baud=_BAUD, nodes=(1,), **limits))
    far = Side("far")
    nodes: list[Rs485Node] = []

    def join() -> None:
        settings = {"queue_bytes": 1 << 20, "answer_s": 30, "turnaround_s": 0}
        nodes.append(Rs485Node(MasterPort(line), 1, far.hub, loop, **settings))

    async def garbage() -> None:
        os.write(line.master, noise(2000))

    async def cut() -> None:
        os.write(line.master, encode(frame(3000))[:1500])
        nodes.pop().close()
        line.unplug()
        await until(lambda: not near.up)

    async def mend() -> None:
        line.plug()
        join()

    def clog() -> None:
        loop.remove_reader(line.master)

    def close() -> None:
        for node in nodes:
            node.close()
        line.close()

    join()
    near.open()
    return Pair(near, far, clog, garbage, cut, mend, closers=[close])


def i2c(_: Path, clogged: bool = False) -> Pair:
    """The memory adapter, called from the link's own thread as the kernel's is."""
    memory = MemoryAdapter([0x42], blocks=True)
    target = I2cTarget(memory, 0x42)
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "poll_ms": 1, **_RETRY}
    return i2c_pair(memory, target, Side("near", partial(I2cLink, 1, [0x42], adapter=memory.open, **limits)))


def i2c_pair(adapter: Any, target: I2cTarget, near: Side) -> Pair:
    """A controller and one target, at 0x42; what can happen to a target."""
    far = Side("far")
    target.mailbox.queue_bytes = 1 << 20
    target.join(far.hub, asyncio.get_running_loop())
    near.open()

    def pipe() -> Any:
        link: Any = near.link
        return link.targets[0x42]

    async def cut() -> None:
        read, left = adapter.read_i2c_block_data, iter(range(60))  # of more than 100 segments

        def fail_in_the_middle(address: int, register: int, length: int) -> list[int]:
            if next(left, None) is None and 0x42 in adapter.targets:
                target.reset()
                target.unplug()
            return list(read(address, register, length))

        adapter.read_i2c_block_data = fail_in_the_middle
        far.say(frame(3000))
        await until(lambda: pipe().state == "absent")

    async def mend() -> None:
        del adapter.read_i2c_block_data
        target.plug()

    def clog() -> None:
        target.clogged = True

    def ready() -> bool:
        return bool(pipe().state == "up")

    return Pair(near, far, clog, cut=cut, mend=mend, ready=ready, closers=[target.close])


_STUB = 0x42


def stub() -> int | None:
    """The number of i2c-stub's adapter."""
    for name in sorted(Path("/sys/class/i2c-adapter").glob("i2c-*/name")):
        if "stub" in name.read_text():
            return int(name.parent.name.removeprefix("i2c-"))
    return None


class StubMemory:
    """The far end of i2c-stub, which is memory alone: a target's mailbox in it, served every millisecond."""

    def __init__(self, number: int) -> None:
        self.targets, self.hung = {_STUB: Target()}, set[int]()
        self.on_message: Callable[[int, bytes], None] = lambda address, message: None
        self.left = 0  # looks at the memory until this target dies; 0: never
        self._adapter, self._loop = open_adapter(number), asyncio.get_running_loop()
        self._handle = self._loop.call_soon(self._serve)

    def send(self, address: int, message: bytes) -> bool:
        return self.targets[address].send(message)

    def _serve(self) -> None:
        self._handle = self._loop.call_later(0.001, self._serve)
        if _STUB in self.hung:
            return
        target, adapter = self.targets[_STUB], self._adapter
        # ctl first: a new one means that all before it is written
        ctl = adapter.read_i2c_block_data(_STUB, 0x1F, 1)
        target.put(0, bytes([*adapter.read_i2c_block_data(_STUB, 0, 0x1F), *ctl]))
        for message in target.poll(self._loop.time()):
            self.on_message(_STUB, message)
        self._die_in_time(target)
        for register, data in target.changes():
            adapter.write_i2c_block_data(_STUB, register, list(data))

    def _die_in_time(self, target: Target) -> None:
        if self.left:
            self.left -= 1
            if not self.left:
                target.boot()
                self.hung.add(_STUB)

    def close(self) -> None:
        self._handle.cancel()
        self._adapter.close()


def i2c_stub(_: Path, clogged: bool = False) -> Pair:
    """The kernel's I2C on i2c-stub, whose memory answers whatever becomes of the target."""
    number = stub()
    assert number is not None
    memory: Any = StubMemory(number)
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "poll_ms": 1, **_RETRY}
    near = Side("near", partial(I2cLink, number, [_STUB], **limits))
    pair = i2c_pair(memory, I2cTarget(memory, _STUB), near)

    def state() -> Any:
        link: Any = near.link
        return link.targets[_STUB].state

    async def cut() -> None:
        memory.left = 40  # looks, of more than 100
        pair.far.say(frame(3000))
        await until(lambda: state() == "stalled")

    async def mend() -> None:
        memory.hung.clear()

    pair.cut, pair.mend = cut, mend
    pair.closers.append(memory.close)
    return pair


def no_stub() -> str:
    """Why i2c-stub cannot be used; "" if it can."""
    return "" if stub() is not None else "no i2c-stub: tests/kernel starts a machine that has it"


I2C_LEFT_OUT = {
    _GARBAGE: "a target's 64 bytes hold no stream: flipped bits are in tests/bridges/test_codec_mailbox.py"
}
_UDP = {_CLOGGED: "loopback takes everything at once: the clogged bus is simulated, and in tests/kernel"}


def no_can(channel: str, mtu: int) -> str:
    """Why a SocketCAN interface cannot be used; "" if it can."""
    try:
        found = int(Path(f"/sys/class/net/{channel}/mtu").read_text())
    except OSError:
        return f"no interface {channel}: tests/kernel starts a machine that has one"
    return "" if found >= mtu else f"{channel} has no CAN FD"


def _socketcan(name: str, fd: bool) -> Maker:
    pair = partial(can, interface="socketcan", channel="vcan0", fd=fd)
    missing = partial(no_can, "vcan0", 72 if fd else 16)
    return Maker(name, 63 if fd else 7, pair, window=4, left_out=_UDP, missing=missing)


_UDP_CAN = partial(can, interface="udp_multicast", channel=_CAN_GROUP)
MAKERS = [
    Maker("uart", 254, uart, partial(uart, clogged=True)),
    Maker("uart-socket", 254, uart_socket, partial(uart_socket, clogged=True)),
    Maker("rs485", 254, rs485, partial(rs485, clogged=True)),
    Maker("can-udp", 7, partial(_UDP_CAN, fd=False), window=4, left_out=_UDP),
    Maker("can-udp-fd", 63, partial(_UDP_CAN, fd=True), window=16, left_out=_UDP),
    Maker("can-slcan", 7, slcan, partial(slcan, clogged=True)),
    _socketcan("can-vcan", False),
    _socketcan("can-vcan-fd", True),
    Maker("multicast", 1396, multicast, window=64, left_out=_UDP),
    Maker("i2c", 30 - 4, i2c, partial(i2c, clogged=True), left_out=I2C_LEFT_OUT),
    Maker(
        "i2c-stub", 30 - 4, i2c_stub, partial(i2c_stub, clogged=True), left_out=I2C_LEFT_OUT, missing=no_stub
    ),
]
