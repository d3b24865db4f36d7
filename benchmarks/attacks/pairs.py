"""The honest: `python -m benchmarks.attacks.pairs NAME PORTS FOLDER SECONDS` prints latencies in ms, as JSON.

One message each 10 ms goes one way; questions are asked one after the other, each by a new connection.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from zlib import crc32

from benchmarks.attacks.peers import (
    GROUP,
    HONEST,
    QUESTION,
    ZMTP,
    Ports,
    beat,
    bound,
    connected,
    framed,
    greeted,
    honest_frame,
    message_from,
    sender_to_group,
)

PERIOD_S = 0.01
PATIENCE_S = 1.0
_LONG_BYTES = 2000
_SPEED = 0x1234 << 8 | 3 << 21 | 4 << 26 | 77

Say = Callable[[bytes], object]


def _one_way(port: int, say: Say, size: int = 4) -> Callable[[int], None]:
    """Return what says a frame and waits until a peer of the bus hears it."""
    ear = greeted(port, HONEST)
    ear.settimeout(PATIENCE_S)

    def go(number: int) -> None:
        said = honest_frame(number, size)
        say(said)
        while message_from(ear)[-len(said) :] != said:
            pass

    return go


def bus(ports: Ports, folder: Path, port: str = "bus") -> Callable[[int], None]:
    mouth = greeted(ports["bus"], HONEST)
    return _one_way(ports[port], lambda said: mouth.sendall(framed(said)))


def apart(ports: Ports, folder: Path) -> Callable[[int], None]:
    """Two buses of one gateway, with a bridge between them."""
    return bus(ports, folder, "other")


def group(ports: Ports, folder: Path) -> Callable[[int], None]:
    mouth, place = sender_to_group(HONEST), (GROUP, ports["group"])
    return _one_way(ports["bus"], lambda said: mouth.sendto(said + crc32(said).to_bytes(4, "little"), place))


def broadcast(ports: Ports, folder: Path) -> Callable[[int], None]:
    from bridges.media.udp.datagram import encode

    mouth, place = bound(HONEST), ("127.0.0.1", ports["other"])
    return _one_way(ports["bus"], lambda said: mouth.sendto(encode(said), place))


def beats(ports: Ports, folder: Path) -> Callable[[int], None]:
    """Heartbeats, which a catalog answers."""
    sock = bound(HONEST)
    sock.settimeout(PATIENCE_S)

    def go(number: int) -> None:
        name = f"honest {number}"
        sock.sendto(beat(name), ("127.0.0.1", ports["catalog"]))
        while not sock.recv(512).endswith(name.encode()):
            pass

    return go


def long(ports: Ports, folder: Path) -> Callable[[int], None]:
    """Frames of three fragments."""
    from bridges.media.multicast.datagram import Encoder

    mouth, place, encoder = sender_to_group(HONEST), (GROUP, ports["group"]), Encoder(900, 7, 1)

    def say(said: bytes) -> None:
        for datagram, _ in encoder.pack([said]):
            mouth.sendto(datagram, place)

    return _one_way(ports["bus"], say, _LONG_BYTES)


def sealed(ports: Ports, folder: Path) -> Callable[[int], None]:
    from bridges.media.multicast.datagram import Encoder
    from bridges.media.seals import Seals
    from bus.keys import Keyring, read_key

    seals = Seals(Keyring([read_key(str(folder / "key"))]), "multicast", 9, time.time, {})
    mouth, place, encoder = sender_to_group(HONEST), (GROUP, ports["group"]), Encoder(1400, 7, 1, seals=seals)
    return _one_way(ports["bus"], lambda said: mouth.sendto(encoder.pack([said])[0][0], place))


def can(ports: Ports, folder: Path) -> Callable[[int], None]:
    import can as library

    port = library.Bus(interface="udp_multicast", channel=GROUP, port=ports["group"], hop_limit=0, fd=True)
    numbers = count()

    def say(said: bytes) -> None:
        data = said + bytes(23 - len(said)) + bytes([0xE0 | next(numbers) % 32])
        port.send(library.Message(arbitration_id=_SPEED, is_fd=True, bitrate_switch=True, data=data))

    return _one_way(ports["bus"], say)


def page(ports: Ports, folder: Path) -> Callable[[int], None]:
    def go(number: int) -> None:
        with connected(ports["page"], HONEST) as sock:
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            if not sock.recv(100).startswith(b"HTTP/1.1 200"):
                raise ConnectionError("no answer")

    return go


def catalog(ports: Ports, folder: Path) -> Callable[[int], None]:
    def go(number: int) -> None:
        with connected(ports["catalog"], HONEST) as sock:
            sock.sendall(ZMTP + QUESTION)
            heard = b""
            while b"o_O" not in heard:
                more = sock.recv(4096)
                if not more:
                    raise ConnectionError("closed")
                heard += more

    return go


async def tmq(ports: Ports, seconds: float) -> list[float]:
    """Time what goes from a bus to a subscriber of TMQ."""
    from bus.tmq import Client

    mouth, sent, took = greeted(ports["bus"], HONEST), dict[bytes, float](), list[float]()
    async with Client(brokers=[f"127.0.0.1:{ports['broker']}"]) as client:
        await client.subscribe("honest")
        await asyncio.sleep(1.0)  # until the bridge knows

        async def hear() -> None:
            async for _, data in client:
                if data in sent:
                    took.append(1e3 * (time.monotonic() - sent.pop(data)))

        hearing = asyncio.create_task(hear())
        end_s = time.monotonic() + seconds
        for number in count():
            if time.monotonic() > end_s:
                break
            said = b"\1" + honest_frame(number)[1:]
            sent[number.to_bytes(4, "big")] = time.monotonic()
            mouth.sendall(framed(said))
            await asyncio.sleep(2 * PERIOD_S)
        await asyncio.sleep(1.0)
        hearing.cancel()
    return took + [1e3 * PATIENCE_S] * len(sent)


PAIRS = {one.__name__: one for one in (bus, apart, group, broadcast, beats, long, sealed, can, page, catalog)}


def times(go: Callable[[int], None], seconds: float) -> Iterator[float]:
    """Yield how long each message took, in ms; one that is lost, as long as the patience."""
    end_s = time.monotonic() + seconds
    for number in count(int(1e6 * time.time()) & 0xFFFFFFF):
        began_s = time.monotonic()
        try:
            go(number)
            yield 1e3 * (time.monotonic() - began_s)
        except OSError:
            yield 1e3 * PATIENCE_S
        time.sleep(PERIOD_S)
        if time.monotonic() > end_s:
            return


def main(name: str, ports: str, folder: str, seconds: str) -> None:
    known: Ports = json.loads(ports)
    if name == "tmq":
        took = asyncio.run(tmq(known, float(seconds)))
    else:
        go = PAIRS[name](known, Path(folder))
        list(times(go, 0.0))  # the first one warms both sides up
        took = list(times(go, float(seconds)))
    print(json.dumps([round(one, 3) for one in took]))


if __name__ == "__main__":
    main(*sys.argv[1:])
