"""The strangers: `python -m benchmarks.attacks.attackers NAME PORTS FOLDER` attacks until it is ended.

Each stays on one core.
"""

import json
import os
import random
import resource
import select
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from benchmarks.attacks.peers import (
    GROUP,
    STRANGER,
    TMQ_HELLO,
    ZMTP,
    Ports,
    beat,
    bound,
    connected,
    framed,
    greeted,
    sender_to_group,
)
from bridges.media.udp.datagram import encode
from bus.wire.frame import pack

_SMALL = pack(2, (5,), b"")
_ENCODED = encode(_SMALL)
_UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: bus.sp.nanomsg.org\r\n\r\n"
)
_NO_MASK = bytes(4)
_RATE = 10_000  # frames a second that a bus of CAN FD carries
_THREADS = 4
_CROWD = 2000


def _hello(folder: Path) -> bytes:
    """Return the first bytes that a client of TLS sends."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake without a server")


def tls(ports: Ports, folder: Path) -> None:
    hello = _hello(folder)

    def go() -> None:
        with connected(ports["other"], STRANGER, 3.0) as sock:
            sock.sendall(hello)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.recv(4096)

    _in_threads(go)


def heads(ports: Ports, folder: Path) -> None:
    def go() -> None:
        with connected(ports["other"], STRANGER, 3.0) as sock:
            for at in range(len(_UPGRADE) - 4):
                sock.sendall(_UPGRADE[at : at + 1])
                if select.select([sock], [], [], 0)[0]:
                    return

    _in_threads(go)


def _in_threads(go: Callable[[], None]) -> None:
    def loop() -> None:
        while True:
            try:
                go()
            except OSError:
                time.sleep(0.005)

    for _ in range(_THREADS):
        threading.Thread(target=loop, daemon=True).start()
    threading.Event().wait()


def _ws(unit: bytes, begin: bytes = b"") -> Callable[[Ports, Path], None]:
    def attack(ports: Ports, folder: Path) -> None:
        def go() -> None:
            with connected(ports["other"], STRANGER, 2.0) as sock:
                sock.sendall(_UPGRADE)
                sock.recv(4096)
                sock.sendall(begin)
                _pour(sock, unit * 2000)

        _in_threads(go)

    return attack


def _pour(sock: socket.socket, data: bytes) -> None:
    """Send the same for ever, and read what is answered, so that nothing waits for us."""
    threading.Thread(target=_swallow, args=(sock,), daemon=True).start()
    while True:
        sock.sendall(data)


def _swallow(sock: socket.socket) -> None:
    try:
        while sock.recv(65536):
            pass
    except OSError:
        pass


def _silent(port: str, said: bytes = b"", most: int = 300) -> Callable[[Ports, Path], None]:
    """Return an attack that holds as many connections as it can, and opens those again that end."""

    def attack(ports: Ports, folder: Path) -> None:
        held = list[socket.socket]()
        while True:
            held = [sock for sock in held if _is_open(sock)]
            while len(held) < most:
                try:
                    held.append(connected(ports[port], STRANGER, 0.5))
                    held[-1].sendall(said)
                except OSError:
                    break
            time.sleep(0.01)

    return attack


def _is_open(sock: socket.socket) -> bool:
    try:
        sock.setblocking(False)
        while sock.recv(4096):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    sock.close()
    return False


def crowd(ports: Ports, folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (_CROWD + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    held = [greeted(ports["other"], STRANGER) for _ in range(_CROWD)]
    for sock in held:
        sock.sendall((1 << 20).to_bytes(8, "big"))
        sock.setblocking(False)
    while True:
        for sock in held:
            with suppress(BlockingIOError):
                sock.send(b"x")


def commands(ports: Ports, folder: Path) -> None:
    ping = b"\4\7\4PING\0\1"

    def go() -> None:
        with connected(ports["catalog"], STRANGER, 2.0) as sock:
            sock.sendall(ZMTP)
            _pour(sock, ping * 2000)

    _in_threads(go)


def subscriptions(ports: Ports, folder: Path) -> None:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(1000)]
    with connected(ports["broker"], STRANGER) as sock:
        places = [struct.pack(">HH", 2, one.getsockname()[1]) + bytes((127, 0, 0, 1)) for one in listeners]
        sock.sendall(TMQ_HELLO + b"".join(b"\x46\0\0\x08" + place for place in places))
        for ready in _ready(listeners):
            if not ready.recv(65536):
                raise ConnectionError


def _ready(listeners: list[socket.socket]) -> Iterator[socket.socket]:
    """Yield accepted connections that have something to read, each greeted."""
    poll, known = select.epoll(), {one.fileno(): one for one in listeners}
    waiting = set(known)
    for number in known:
        poll.register(number, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            if number in waiting:
                made = known[number].accept()[0]
                made.sendall(TMQ_HELLO)
                known[made.fileno()] = made
                poll.register(made, select.EPOLLIN)
                continue
            try:
                yield known[number]
            except OSError:
                poll.unregister(number)


def _datagrams(make: Callable[[int], bytes], pause_s: float = 0.0) -> Callable[[Ports, Path], None]:
    """Return an attack with datagrams of multicast; `make(number)` returns the messages of one."""

    def attack(ports: Ports, folder: Path) -> None:
        sock, place, number = sender_to_group(STRANGER), (GROUP, ports["group"]), 0
        while True:
            number += 1
            body = make(number)
            sock.sendto(body + crc32(body).to_bytes(4, "little"), place)
            if pause_s:
                time.sleep(pause_s)

    return attack


def _poured(port: str, make: Callable[[int], bytes]) -> Callable[[Ports, Path], None]:
    """Return an attack with datagrams to a port of this machine."""

    def attack(ports: Ports, folder: Path) -> None:
        place, number = ("127.0.0.1", ports[port]), 0
        with bound(STRANGER) as sock:
            while True:
                number += 1
                sock.sendto(make(number), place)

    return attack


def _fragment(number: int) -> bytes:
    return b"\xe1\x88" + struct.pack(">HIIH", 0xF000 + 3072, 666, number, 0) + b"x"


def _envelopes(number: int) -> bytes:
    head = b"\xe1\x08" + struct.pack(">H", 0xF000 + len(_SMALL))
    return b"".join(
        head + struct.pack(">II", random.getrandbits(32), 64 * number + n) + _SMALL for n in range(60)
    )


def _sealed(number: int) -> bytes:
    return _SMALL + number.to_bytes(18, "big")


def can(ports: Ports, folder: Path) -> None:
    import can as library

    port = library.Bus(interface="udp_multicast", channel=GROUP, port=ports["group"], hop_limit=0, fd=True)
    began_s, sent = time.monotonic(), 0
    while True:
        data = pack(2, (9, 9), b"x") + bytes(10) + bytes([0xE0 | random.randrange(32)])
        node = random.randrange(2, 60)
        port.send(library.Message(arbitration_id=3 << 21 | 0x1234 << 8 | node, is_fd=True, data=data))
        sent += 1
        ahead_s = sent / _RATE - (time.monotonic() - began_s)
        if ahead_s > 0.002:
            time.sleep(ahead_s)


def _stream(port: str, unit: bytes, sp: bool) -> Callable[[Ports, Path], None]:
    def attack(ports: Ports, folder: Path) -> None:
        def go() -> None:
            with greeted(ports[port], STRANGER) if sp else connected(ports[port], STRANGER) as sock:
                sock.settimeout(None)
                _pour(sock, unit * 4000)

        _in_threads(go)

    return attack


ATTACKERS: dict[str, Callable[[Ports, Path], None]] = {
    "tls": tls,
    "crowd": crowd,
    "heads": heads,
    "pings": _ws(b"\x89\x80" + _NO_MASK),
    "pongs": _ws(b"\x8a\x80" + _NO_MASK),
    "empty": _ws(b"\0\x80" + _NO_MASK, b"\2\x80" + _NO_MASK),
    "bytes": _ws(b"\0\x81" + _NO_MASK + b"x", b"\2\x80" + _NO_MASK),
    "page": _silent("page"),
    "zmtp": _silent("catalog", ZMTP),
    "commands": commands,
    "proxy": _silent("other"),
    "subscriptions": subscriptions,
    "fragments": _datagrams(_fragment),
    "envelopes": _datagrams(_envelopes),
    "tiny": _datagrams(lambda _: 170 * _SMALL),
    "long": _datagrams(lambda _: 8000 * _SMALL),
    "seals": _datagrams(_sealed),
    "broadcast": _poured("other", lambda _: _ENCODED),
    "heartbeats": _poured("catalog", lambda number: beat(f"nobody {number % 1000}")),
    "can": can,
    "raw": _stream("other", _SMALL, sp=False),
    "small": _stream("bus", framed(_SMALL), sp=True),
}


def main(name: str, ports: str, folder: str) -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ATTACKERS[name](json.loads(ports), Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
