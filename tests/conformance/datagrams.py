"""Makers of CAN links, and of multicast links on the loopback interface."""

import socket
from functools import partial
from pathlib import Path
from typing import Any

from bridges.media.can.codec import can_id, segment
from bridges.media.multicast.datagram import Encoder
from bridges.media.udp.datagram import encode
from bridges.media.udp.medium import Udp
from bus.wire.batch import from_payloads
from tests.bridges.support import frame
from tests.conformance.pair import Maker, Pair, Side, noise
from tests.conformance.serial_lines import Server, served
from tests.helpers.links import can_link, multicast_link
from tests.helpers.peers import until
from tests.helpers.ports import free_port

_RETRY: dict[str, Any] = {"retry_min_s": 0.01, "retry_max_s": 0.1}
_CAN_GROUP, _GROUP = "239.74.163.9", "239.255.91.9"
_CLOGGED = "test_a_clogged_peer_stalls_nobody_and_each_drop_is_counted"


def slcan(_: Path, clogged: bool = False) -> Pair:
    """The driver of USB adapters (slcan), with the server in place of its serial line."""
    server = Server()
    url, options = f"socket://127.0.0.1:{server.port}", {"sleep_after_open": 0}
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "age_ms": 60_000, **_RETRY}
    near, far = (
        Side(name, partial(can_link, "slcan", url, node, options=options, **limits))
        for node, name in enumerate(("near", "far"), 1)
    )
    lines = [f"T{can_id(0x1234, 2):08X}8{data.hex()}\r" for data in segment(frame(500), 30)]
    return served(server, near, far, "".join(lines[: len(lines) // 2]).encode() + b"T10")


def can(_: Path, interface: str, channel: str, fd: bool) -> Pair:
    """Make a CAN pair: near and far are nodes 1 and 2; a third, node 9, misbehaves."""
    from can import Bus

    options: dict[str, Any] = {}
    if interface == "udp_multicast":
        options = {"port": free_port(), "hop_limit": 0}
    limits = {"queue_bytes": 1 << 20, "age_ms": 60_000, **_RETRY}
    near, far = (
        Side(name, partial(can_link, interface, channel, node, fd=fd, options=options, **limits))
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
    port = free_port()
    near, far = (
        Side(name, partial(multicast_link, _GROUP, port, "lo", queue_bytes=1 << 20, **_RETRY))
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


def _peer(name: str, own: int, other: int) -> Side:
    record = Udp(host="127.0.0.1", port=other, own_port=own, queue_bytes=1 << 20)
    return Side(name, partial(record.link, **_RETRY))


def udp(_: Path) -> Pair:
    ports = free_port(), free_port()
    near, far = _peer("near", *ports), _peer("far", *reversed(ports))

    async def cut(*datagrams: bytes) -> None:
        """Send from the address of the far end, because the near end accepts no other."""
        known = sum(near.reasons("rejected").values())
        far.close()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", ports[1]))
            for datagram in datagrams:
                sock.sendto(datagram, ("127.0.0.1", ports[0]))
        await until(lambda: sum(near.reasons("rejected").values()) >= known + len(datagrams))

    async def mend() -> None:
        far.open()

    async def garbage() -> None:
        await cut(*(noise(seed * 7, seed) for seed in range(50)))
        await mend()

    near.open()
    far.open()
    return Pair(near, far, garbage=garbage, cut=partial(cut, encode(frame(3000))[:1500]), mend=mend)


_LOSS = "test_a_loss_is_counted_and_has_a_reason"
_UDP = {
    _LOSS: "the loopback interface stays: a lost one is simulated, and in tests/kernel",
    _CLOGGED: "loopback takes everything at once: the clogged bus is simulated, and in tests/kernel",
}


def no_can(channel: str, mtu: int) -> str:
    """Return why a SocketCAN interface cannot be used; "" if it can."""
    try:
        found = int(Path(f"/sys/class/net/{channel}/mtu").read_text())
    except OSError:
        return f"no interface {channel}: tests/kernel starts a machine that has one"
    return "" if found >= mtu else f"{channel} has no CAN FD"


def _socketcan(name: str, fd: bool) -> Maker:
    pair = partial(can, interface="socketcan", channel="vcan0", fd=fd)
    missing = partial(no_can, "vcan0", 72 if fd else 16)
    mtu = 63 if fd else 7  # in emulation each message takes long: `can-udp` sends them all by the same link
    return Maker(name, mtu, pair, window=4, token_step=17, share=0.25, left_out=_UDP, missing=missing)


_UDP_CAN = partial(can, interface="udp_multicast", channel=_CAN_GROUP)
MAKERS = [
    Maker("can-udp", 7, partial(_UDP_CAN, fd=False), window=4, left_out=_UDP),
    Maker("can-udp-fd", 63, partial(_UDP_CAN, fd=True), window=16, left_out=_UDP),
    Maker("can-slcan", 7, slcan, partial(slcan, clogged=True), token_step=17),  # the codec of `can-udp`
    _socketcan("can-vcan", False),
    _socketcan("can-vcan-fd", True),
    Maker("multicast", 1396, multicast, window=64, left_out=_UDP),
    Maker("udp", 1468, udp, window=32, left_out=_UDP),
]
