"""Makers of simulated media: the same links on wires of `bridges.simulate`."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bridges.media.can.codec import can_id, segment
from bridges.media.ieee802154.numbering import Outbound
from bridges.media.medium import SEAL_BYTES
from bridges.media.multicast.datagram import Encoder
from bridges.media.seals import Seals
from bridges.simulate import (
    CanWire,
    I2cWire,
    MulticastWire,
    RadioWire,
    SerialLine,
    SimulatedCan,
    SimulatedMulticast,
    SimulatedRadio,
    SimulatedRs485,
    SimulatedUart,
    TcpWire,
    rs485_node,
)
from bus.keys import Keyring
from bus.wire.batch import from_payloads
from bus.wire.sp import HANDSHAKE, SCRATCH_BYTES
from tests.bridges.support import frame
from tests.conformance.i2c_buses import I2C_LEFT_OUT, i2c_pair
from tests.conformance.pair import Action, Maker, Pair, Side, noise
from tests.conformance.streams import any_bytes, hanging_up
from tests.helpers.peers import until

_RETRY: dict[str, Any] = {"retry_min_s": 0.01, "retry_max_s": 0.1}
_STRANGER = ("10.0.9.9", 7)
_KEYS = Keyring((b"k" * 32,))


def _seals(keys: Keyring, medium: str) -> Seals:
    """Return the seals of a stranger that has the key."""
    return Seals(keys, medium, 99, time.time, {})


def opened(near: Side, far: Side, **actions: Any) -> Pair:
    near.open()
    far.open()
    return Pair(near, far, **actions)


def pulling_out(side: Side, end: Any) -> tuple[Side, Action, Action]:
    """Return the actions that unplug the device of `side`, and plug it in again."""

    async def lose() -> None:
        end.unplug()

    async def regain() -> None:
        end.plug()

    return side, lose, regain


def uart(_: Path, clogged: bool = False, keys: Keyring | None = None) -> Pair:
    loop, line = asyncio.get_running_loop(), SerialLine(115200)
    ends = line.end("near"), line.end("far")
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "keys": keys, **_RETRY}
    near, far = (Side(end.name, partial(SimulatedUart, end, **limits)) for end in ends)

    async def garbage() -> None:
        ends[0].hear(loop, noise(5000))

    async def cut() -> None:
        far.say(frame(3000))
        await asyncio.sleep(0.1)  # of the 0.26 s that it takes
        ends[1].unplug()
        await until(lambda: not far.up)

    async def mend() -> None:
        ends[1].plug()

    def clog() -> None:
        ends[1].clogged = True

    return opened(near, far, clog=clog, garbage=garbage, cut=cut, mend=mend, loses=pulling_out(near, ends[0]))


def rs485(_: Path, clogged: bool = False) -> Pair:
    loop, line = asyncio.get_running_loop(), SerialLine(115200, shared=True, echo=True)
    end, node_end = line.end("near"), line.end("far")
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, **_RETRY}
    near = Side("near", partial(SimulatedRs485, end, nodes=(1,), **limits))
    far = Side("far")
    pair = Pair(near, far)  # this pair is so slow that it clogs by itself

    def join() -> None:
        node = rs485_node(node_end, 1, far.hub, loop, queue_bytes=1 << 20)
        pair.closers.append(node.close)

    async def garbage() -> None:
        end.hear(loop, noise(5000))

    async def cut() -> None:
        far.say(frame(3000))
        await asyncio.sleep(0.1)
        node_end.unplug()
        await until(lambda: not far.up)

    async def mend() -> None:
        node_end.plug()
        join()

    near.open()
    join()
    pair.garbage, pair.cut, pair.mend = garbage, cut, mend
    pair.loses = pulling_out(near, end)
    return pair


def can(_: Path, fd: bool, clogged: bool = False, keys: Keyring | None = None) -> Pair:
    loop, wire = asyncio.get_running_loop(), CanWire()
    ports = wire.port("near", fd), wire.port("far", fd)
    stranger = wire.port("stranger", fd)
    stranger_bus = stranger.open(loop)
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "age_ms": 60_000, "keys": keys, **_RETRY}
    near, far = (
        Side(port.name, partial(SimulatedCan, port, node, fd=fd, **limits))
        for node, port in enumerate(ports, 1)
    )

    def clog() -> None:
        ports[0].clogged = True

    def send(*frames: bytes, subject: int = 0x1234) -> None:
        from can import Message

        for data in frames:
            stranger_bus.send(Message(arbitration_id=can_id(subject, 9), data=data, is_fd=len(data) > 8))

    async def garbage() -> None:
        send(*(noise(8, seed) for seed in range(50)))
        await until(lambda: not stranger.sending)

    half = segment(frame(500), 3, fd)

    async def cut() -> None:
        send(*half[: len(half) // 2])
        await until(lambda: not stranger.sending)

    async def mend() -> None:
        message = frame(200) if keys is None else _seals(keys, "can").seal(frame(200))
        send(*segment(message, 4, fd))

    pair = opened(near, far, clog=clog, garbage=garbage, cut=cut, mend=mend, back=[frame(200)])
    pair.closers.append(stranger_bus.shutdown)
    pair.loses = pulling_out(near, ports[0])
    return pair


def tcp(_: Path, clogged: bool = False) -> Pair:
    loop, wire = asyncio.get_running_loop(), TcpWire(rate_bytes_s=1e6)
    end, stranger = wire.client("far"), wire.client("stranger")
    limits = {"queue_bytes": (1 if clogged else 8) << 20, **_RETRY}
    near = Side("near", partial(wire.listen, **limits), once=True)
    far = Side("far", partial(end.dial, **limits), once=True)

    def clog() -> None:
        end.clogged = True

    async def garbage() -> None:
        sock = await stranger.connect(loop)
        sock.send(noise(5000))
        await until(lambda: not any("stranger" in c.ends[0].name for c in wire.connections))
        sock.close()

    async def cut() -> None:
        sock = await stranger.connect(loop)
        sock.send(HANDSHAKE + from_payloads([frame(3000)]).data[:1500])
        await asyncio.sleep(1)
        wire.reset(stranger)
        await until(lambda: len(near.hub.pipes) == 3)
        sock.close()

    async def mend() -> None:
        sock = await stranger.connect(loop)
        sock.send(HANDSHAKE + bytes(from_payloads([frame(200)]).data))
        await until(lambda: len(near.heard.messages) == 2)
        sock.close()
        await until(lambda: len(near.hub.pipes) == 3)

    pair = opened(near, far, clog=clog, garbage=garbage, cut=cut, mend=mend, back=[frame(200)])
    pair.loses = hanging_up(near, far)
    return pair


def multicast(_: Path, clogged: bool = False, keys: Keyring | None = None) -> Pair:
    loop, wire = asyncio.get_running_loop(), MulticastWire()
    hosts = wire.member("near"), wire.member("far")
    limits = {"queue_bytes": 65536 if clogged else 1 << 20, "keys": keys, **_RETRY}
    seals = None if keys is None else _seals(keys, "multicast")
    near, far = (Side(host.name, partial(SimulatedMulticast, host, **limits)) for host in hosts)

    def clog() -> None:
        hosts[0].clogged = True

    async def garbage() -> None:
        for seed in range(50):
            wire.carry(loop, noise(seed * 7, seed), _STRANGER)

    async def cut() -> None:
        first = Encoder(1400, 7, 7, seals=seals).encode(from_payloads([frame(3000)]))[0][0]
        wire.carry(loop, first, _STRANGER)
        await asyncio.sleep(0.1)

    async def mend() -> None:
        for datagram, _ in Encoder(1400, 7, 8, seals=seals).encode(from_payloads([frame(2000)])):
            wire.carry(loop, datagram, _STRANGER)

    pair = opened(near, far, clog=clog, garbage=garbage, cut=cut, mend=mend, back=[frame(2000)])
    pair.loses = pulling_out(near, hosts[0])
    return pair


def radio(_: Path, clogged: bool = False, keys: Keyring | None = None) -> Pair:
    loop, wire = asyncio.get_running_loop(), RadioWire(echoes=True)
    hosts = wire.member("near"), wire.member("far")
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "keys": keys, **_RETRY}
    seals = None if keys is None else _seals(keys, "ieee802154")
    outbound = Outbound(65_535)
    near, far = (Side(host.name, partial(SimulatedRadio, host, **limits)) for host in hosts)

    def clog() -> None:
        hosts[0].clogged = True

    async def garbage() -> None:
        for seed in range(50):
            wire.carry(loop, noise(seed * 2, seed), _STRANGER)

    def say_(made: list[tuple[bytes, int]]) -> None:
        for datagram, _ in made:
            wire.carry(loop, outbound.numbered(datagram), _STRANGER)
            outbound.sent()

    async def cut() -> None:
        say_(Encoder(108, 7, 7, seals=seals).encode(from_payloads([frame(3000)]))[:1])
        await asyncio.sleep(0.1)

    async def mend() -> None:
        say_(Encoder(108, 7, 8, seals=seals).encode(from_payloads([frame(2000)])))

    pair = opened(near, far, clog=clog, garbage=garbage, cut=cut, mend=mend, back=[frame(2000)])
    pair.loses = pulling_out(near, hosts[0])
    return pair


def i2c(_: Path, clogged: bool = False) -> Pair:
    wire = I2cWire([0x42])
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, **_RETRY}
    return i2c_pair(wire.adapter, wire.targets[0x42], Side("near", partial(wire.link, **limits)))


def _clogged(make: Callable[..., Pair]) -> Callable[..., Pair]:
    return partial(make, keys=_KEYS, clogged=True)


_FEW = 17  # the codec is that of another maker that tries all, here or `can-udp`

MAKERS = [
    Maker("simulated-uart", 254, uart, partial(uart, clogged=True), simulated=True),
    Maker("simulated-rs485", 254, rs485, partial(rs485, clogged=True), simulated=True, token_step=_FEW),
    Maker(
        "simulated-can",
        7,
        partial(can, fd=False),
        partial(can, fd=False, clogged=True),
        simulated=True,
        token_step=_FEW,
    ),
    Maker("simulated-can-fd", 63, partial(can, fd=True), partial(can, fd=True, clogged=True), simulated=True),
    Maker(
        "simulated-tcp", SCRATCH_BYTES - 8, tcp, partial(tcp, clogged=True), simulated=True, sizes=any_bytes
    ),
    Maker("simulated-multicast", 1396, multicast, partial(multicast, clogged=True), simulated=True),
    Maker("simulated-radio", 104, radio, partial(radio, clogged=True), simulated=True),
    Maker(
        "simulated-i2c",
        30 - 4,
        i2c,
        partial(i2c, clogged=True),
        simulated=True,
        left_out=I2C_LEFT_OUT,
    ),
    *(
        Maker(
            f"simulated-{name}-signed",
            edge,
            partial(make, keys=_KEYS),
            _clogged(make),
            simulated=True,
            token_step=_FEW,
        )
        for name, edge, make in (
            ("uart", 254 - SEAL_BYTES, uart),
            ("can", 7, partial(can, fd=False)),
            ("can-fd", 63 - SEAL_BYTES, partial(can, fd=True)),
            ("multicast", 1396 - SEAL_BYTES, multicast),
            ("radio", 104 - SEAL_BYTES, radio),
        )
    ),
]
