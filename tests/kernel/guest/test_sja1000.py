"""The CAN link on a real driver (kvaser_pci): two SJA1000 on one simulated bus, can0 and can1."""

import errno
import socket
import struct
import subprocess
from collections.abc import Iterator

import pytest

from bridges.media.can.codec import can_id
from bus.hub import Hub
from tests.bridges.support import MESSAGE, SIZES, frame, recorder, say
from tests.helpers.peers import until
from tests.kernel.guest.support import PATIENCE_S, attach_pair, can_link, ip, ips, python


@pytest.fixture(autouse=True)
def pair() -> Iterator[None]:
    attach_pair()
    yield
    ips("link set can0 down", "link set can1 down")


@pytest.fixture
def narrow() -> Iterator[None]:
    """Make can0 a slow bus with a short queue, because the emulated controller sends in no time.

    It sends 128 kbit/s of 16-byte frames and queues 4 frames. Frames that do not fit get ENOBUFS, as with the
    default queue of ten frames.
    """
    words = "qdisc replace dev can0 root tbf rate 128kbit burst 64 limit 64 mtu 72"
    run_tc(words)
    yield
    run_tc("qdisc del dev can0 root")


def run_tc(words: str) -> None:
    subprocess.run(["tc", *words.split()], check=True, timeout=PATIENCE_S)


async def test_every_size_crosses_to_another_process_and_back() -> None:
    hub = Hub()
    heard = recorder(hub)
    async with python("can_echo", "can1", "9"):
        with can_link(hub, "can0", 1) as link:
            await until(lambda: link.state == "up", PATIENCE_S)
            said: list[bytes] = []
            for size in (size for size in SIZES if size not in (1024, 2048)):  # these are sent on vcan
                said.append(frame(size))
                say(hub, heard, said[-1])
                await until(lambda: len(heard.messages) == len(said), PATIENCE_S, f"a frame of {size} bytes")
            assert heard.messages == said
            await until(lambda: link.stats.queued == 0, PATIENCE_S)
            assert link.stats.sent == len(said)
            assert link.stats.balance() == 0


def fill(channel: str) -> int:
    """Send a burst from a plain socket. Return the errno that ends it, or 0."""
    packed = struct.pack("=IB3x8s", can_id(0x42, 99) | socket.CAN_EFF_FLAG, 8, bytes(8))
    with socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW) as raw:
        raw.bind((channel,))
        for _ in range(1000):
            try:
                raw.send(packed)
            except OSError as error:
                return error.errno or 0
    return 0


@pytest.mark.usefixtures("narrow")
async def test_a_full_transmit_queue_loses_nothing() -> None:
    assert fill("can0") == errno.ENOBUFS  # otherwise this test shows nothing
    near, far = Hub(), Hub()
    theirs = recorder(far)
    with can_link(near, "can0", 1, in_flight=512) as a, can_link(far, "can1", 2) as b:
        await until(lambda: a.state == b.state == "up", PATIENCE_S)
        messages = [frame(2048, seed) for seed in range(4)]
        say(near, None, *messages)
        await until(lambda: len(theirs.messages) == len(messages), PATIENCE_S)
        assert theirs.messages == messages
        await until(lambda: a.stats.queued == 0, PATIENCE_S)
        assert a.stats.sent == len(messages)
        assert a.stats.dropped == {}
        assert a.losses == 0
        assert a.state == "up"


@pytest.mark.usefixtures("narrow")
async def test_an_interface_taken_down_in_traffic_is_a_state_and_old_messages_do_not_burst_out() -> None:
    near, far = Hub(), Hub()
    theirs = recorder(far)
    with can_link(near, "can0", 1, age_ms=200) as a, can_link(far, "can1", 2) as b:
        await until(lambda: a.state == b.state == "up", PATIENCE_S)
        old = [frame(2048, seed) for seed in range(20)]
        say(near, None, *old)
        assert a.stats.queued > 0
        ip("link", "set", "can0", "down")
        await until(lambda: a.state == "waiting", PATIENCE_S)
        assert a.stats.balance() == 0
        assert a.fault
        say(near, None, MESSAGE)  # nobody is there to acknowledge it
        arrived = len(theirs.messages)
        ip("link", "set", "can0", "up")
        await until(lambda: a.state == "up", PATIENCE_S)
        say(near, None, frame(200))
        await until(lambda: frame(200) in theirs.messages, PATIENCE_S)
        assert theirs.messages[arrived:] == [frame(200)]
        assert a.stats.balance() == 0
        await until(lambda: a.stats.queued == 0, PATIENCE_S)  # a frame arrives before the driver confirms it
        assert a.stats.sent + sum(a.stats.dropped.values()) == a.stats.offered


async def test_a_receiver_survives_its_interface_going_down_and_up() -> None:
    near, far = Hub(), Hub()
    theirs = recorder(far)
    with can_link(near, "can0", 1) as a, can_link(far, "can1", 2) as b:
        await until(lambda: a.state == b.state == "up", PATIENCE_S)
        ip("link", "set", "can1", "down")
        await until(lambda: b.state == "waiting", PATIENCE_S)
        ip("link", "set", "can1", "up")
        await until(lambda: b.state == "up", PATIENCE_S)
        say(near, None, MESSAGE)
        await until(lambda: theirs.messages == [MESSAGE], PATIENCE_S)
        assert b.losses == 1
