"""The maker of links on the TMQ network: two clients of one broker."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from bridges.media.tmq.link import TmqLink
from bridges.media.tmq.medium import Tmq
from bus.tmq.broker import Broker
from tests.bridges.support import frame
from tests.conformance.pair import Maker, Pair, Side, noise
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import MESSAGE, StalledSubscriber, packet

_FAST: dict[str, Any] = {"heartbeat_s": 0.1, "retry_min_s": 0.01, "retry_max_s": 0.1}
_TOKEN = 7


def patterned(size: int, seed: int = 0) -> bytes:
    """Return a frame as `frame` does, but with a token at least: without one it would have no pattern."""
    made = frame(max(size, 8), seed)
    return made if made[1] else bytes((1, 1)) + (len(made) - 8).to_bytes(2) + _TOKEN.to_bytes(4) + made[8:]


def _link(url: str, **options: Any) -> TmqLink:
    return TmqLink(Tmq(brokers=(url,), host="127.0.0.1", **options), **_FAST)


def _address(side: Side) -> tuple[str, int]:
    assert isinstance(side.link, TmqLink)
    assert side.link.address is not None
    return side.link.address


async def _send(address: tuple[str, int], *pieces: bytes) -> None:
    _, writer = await asyncio.open_connection(*address)
    for piece in pieces:
        writer.write(piece)
    writer.close()


class Network:
    """A broker that can die and come back at its address."""

    def __init__(self) -> None:
        self.url = f"tcp://127.0.0.1:{free_port()}"
        self._open()

    def _open(self) -> None:
        self.broker = Broker(self.url, **_FAST)
        self.broker.open(asyncio.get_running_loop())

    async def die(self) -> None:
        self.broker.close()

    async def come_back(self) -> None:
        self._open()

    def knows(self, *sides: Side) -> bool:
        """Return whether these sides, and no others, subscribe to all."""
        found = self.broker.registry.subscribers(())
        return sorted(found) == sorted(_address(side) for side in sides if side.up)

    def close(self) -> None:
        self.broker.close()


def tmq(_: Path) -> Pair:
    """Make a pair of clients; a stranger misbehaves towards `near`."""
    network = Network()
    near, far = (Side(name, partial(_link, network.url)) for name in ("near", "far"))

    async def garbage() -> None:
        known = sum(near.reasons("rejected").values())
        for data in (noise(5000), packet(0x55, (1,)), b"\x02\x01\xff\xff" + noise(100)):
            await _send(_address(near), data)
        await until(lambda: sum(near.reasons("rejected").values()) >= known + 3)

    async def cut() -> None:
        await _send(_address(near), patterned(3000)[:1500])

    async def mend() -> None:
        await _send(_address(near), packet(MESSAGE, (_TOKEN,), bytes(200)))

    near.open()
    far.open()
    return Pair(
        near,
        far,
        garbage=garbage,
        cut=cut,
        mend=mend,
        ready=lambda: near.up and far.up and network.knows(near, far),
        closers=[network.close],
        back=[packet(1, (_TOKEN,), bytes(200))],
        loses=(near, network.die, network.come_back),
    )


def clogged(_: Path) -> Pair:
    """Make a pair of which `far` subscribes to nothing, and a stranger to all that it never reads."""
    network = Network()
    near = Side("near", partial(_link, network.url))
    far = Side("far", partial(_link, network.url, subscribe=()))
    stranger = StalledSubscriber(network.broker.addresses[0], asyncio.get_running_loop())

    def ready() -> bool:
        return len(network.broker.registry.subscribers(())) == 2 and near.up and far.up

    near.open()
    far.open()
    return Pair(near, far, ready=ready, closers=[network.close, stranger.close])


MAKERS = [
    Maker(
        "tmq",
        254,
        tmq,
        clogged,
        make=patterned,
        tokens_min=1,
        sizes=patterned,
    )
]
