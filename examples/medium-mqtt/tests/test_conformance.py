"""The MQTT link in the conformance suite of buscoupler, with mosquitto between the two sides."""

import socket
from functools import partial
from pathlib import Path

from buscoupler_mqtt.medium import Mqtt
from mosquitto import PROGRAM, Mosquitto
from paho.mqtt import publish

from bus.wire.frame import pack
from tests.bridges.support import frame
from tests.conformance.pair import Maker, Pair, Side
from tests.conformance.suite import *  # noqa: F403
from tests.helpers.peers import until

LEFT_OUT = {
    "test_every_token_count": "mosquitto takes 200 levels of a topic; test_mqtt.py publishes more",
}
_TOKEN = 7


def patterned(size: int, seed: int = 0) -> bytes:
    """Return a frame as `frame` does, but with one token, or as many as its length needs."""
    made = frame(max(size, 8), seed)
    return made if made[1] else pack(1, [_TOKEN], made[8:])


def within_levels(size: int) -> bytes:
    """Return a frame of this size, or of the largest with fewer than 200 tokens."""
    return patterned(min(size, 2800))


def mqtt(path: Path) -> Pair:
    """Make a pair of clients of one broker; a stranger publishes what cannot be a frame."""
    path.mkdir()
    broker = Mosquitto(path)
    near, far = (Side(name, partial(_link, broker.url)) for name in ("near", "far"))

    async def garbage() -> None:
        known = sum(near.reasons("rejected").values())
        for topic, data in (
            ("a//b", b"x"),
            ("/a", b"x"),
            ("a", bytes(2049)),
            ("/".join("a" * 200) + "/", b""),
        ):
            publish.single(topic, data, qos=1, hostname="127.0.0.1", port=broker.port)
        await until(lambda: sum(near.reasons("rejected").values()) >= known + 4)

    async def cut() -> None:
        with socket.create_connection(("127.0.0.1", broker.port)) as stranger:
            stranger.sendall(bytes.fromhex("100c00044d5154540402000a0000") + bytes.fromhex("30800400016161"))

    async def mend() -> None:
        pass

    async def lose() -> None:
        broker.kill()

    async def regain() -> None:
        broker.start()

    near.open()
    far.open()
    return Pair(
        near, far, clog=broker.halt, garbage=garbage, cut=cut, mend=mend, closers=[broker.kill],
        ready=lambda: near.link.state == far.link.state == "up", loses=(near, lose, regain),
    )  # fmt: skip


def _link(url: str):
    return Mqtt(url=url, subscribe=("#",)).link(retry_min_s=0.01, retry_max_s=0.1)


MAKERS = [
    Maker(
        "mqtt", 254, mqtt, mqtt, make=patterned, tokens_min=1, sizes=within_levels, left_out=LEFT_OUT,
        missing=lambda: "" if PROGRAM else "apt-get install mosquitto",
    )
]  # fmt: skip
