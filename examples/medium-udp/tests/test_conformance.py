"""The UDP link in the conformance suite of buscoupler."""

import socket
from functools import partial
from pathlib import Path

from buscoupler_udp.codec import encode
from buscoupler_udp.medium import Udp

from tests.bridges.support import frame
from tests.conformance.pair import Maker, Pair, Side, noise
from tests.conformance.suite import *  # noqa: F403
from tests.helpers.peers import until
from tests.helpers.ports import free_port

LEFT_OUT = {
    "test_a_clogged_peer_stalls_nobody_and_each_drop_is_counted": "the loopback interface takes everything",
    "test_a_loss_is_counted_and_has_a_reason": "nothing takes a UDP socket of the loopback interface away",
}


def udp(_: Path) -> Pair:
    ports = free_port(), free_port()
    near, far = _side("near", *ports), _side("far", *reversed(ports))

    def say(*datagrams: bytes) -> None:
        """Send from the address of the far end, because the near end accepts no other."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", ports[1]))
            for datagram in datagrams:
                sock.sendto(datagram, ("127.0.0.1", ports[0]))

    async def cut(*datagrams: bytes) -> None:
        known = sum(near.reasons("rejected").values())
        far.close()
        say(*datagrams)
        await until(lambda: sum(near.reasons("rejected").values()) >= known + len(datagrams))

    async def mend() -> None:
        far.open()

    async def garbage() -> None:
        await cut(*(noise(seed * 7, seed) for seed in range(50)))
        await mend()

    near.open()
    far.open()
    half = encode(frame(3000))[:1500]
    return Pair(near, far, garbage=garbage, cut=partial(cut, half), mend=mend)


def _side(name: str, own: int, other: int) -> Side:
    record = Udp(host="127.0.0.1", port=other, local_port=own)
    return Side(name, partial(record.link, retry_min_s=0.01, retry_max_s=0.1))


MAKERS = [Maker("udp", 1468, udp, window=32, left_out=LEFT_OUT)]
