"""Gathering takes place under load only, stops nobody, and never delays a lone message or a dialogue."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final

import pytest

from bus.hub import Hub
from bus.machine.wake_hook import WakefulLoop
from bus.transports import gathering
from bus.transports.framing import sp_framing
from bus.transports.gathering import LARGE_BYTES, ONE_WAY, POOR, READS, WAIT_S, WINDOW_BYTES, Gathering
from bus.transports.stream import Bounds, Calls, StreamPipe
from bus.wire.batch import from_payloads
from bus.wire.sp import HANDSHAKE
from tests.helpers.loopwatch import LoopWatch
from tests.helpers.peers import Ear, wait

RCVBUF_LOCKED = 2  # linux/net/sock.h, SOCK_RCVBUF_LOCK
WATCH: Final = LoopWatch()


class Scene:
    """A gathering on a real TCP socket, with a clock that the test moves."""

    def __init__(self, sock: socket.socket) -> None:
        self.now_s = 0.0
        self.gathering, self.sock = Gathering(sock), sock

    def read(self, read_bytes: int = 72, messages: int = 1, pause_s: float = 5e-6) -> bool:
        """Return whether one read is followed by a wait."""
        self.now_s += pause_s
        return self.gathering.note(read_bytes, messages)

    def stream(self, reads: int = READS + 1) -> int:
        return sum(self.read() for _ in range(reads))

    def option(self, number: int) -> int:
        return self.sock.getsockopt(socket.SOL_SOCKET, number)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sock,
    ):
        scene = Scene(sock)
        monkeypatch.setattr(gathering, "monotonic", lambda: scene.now_s)
        yield scene


@pytest.mark.parametrize("pause_s", [20e-6, 60e-6, 1e-3])
def test_messages_with_pauses_never_wait(scene: Scene, pause_s: float) -> None:
    assert sum(scene.read(pause_s=pause_s) for _ in range(10 * READS)) == 0


@pytest.mark.parametrize("together", [1, 3, 100])
def test_a_dialogue_never_waits_however_quick_it_is(scene: Scene, together: int) -> None:
    for _ in range(10 * READS):
        assert not scene.read(72 * together, together, 1e-9)
        scene.gathering.spoken = True


def test_a_peer_that_goes_on_without_an_answer_speaks_one_way(scene: Scene) -> None:
    for _ in range(3):
        for _ in range(ONE_WAY):
            assert not scene.gathering.is_one_way
            scene.read(pause_s=60e-6)
        assert scene.gathering.is_one_way
        scene.gathering.spoken = True
        scene.read()


def test_a_stream_waits_after_a_run_and_goes_on_while_it_pays(scene: Scene) -> None:
    assert scene.stream(READS) == 0
    assert scene.read()
    assert all(scene.read(720, 10, WAIT_S) for _ in range(5 * READS))


def test_a_stream_that_became_a_dialogue_waits_no_more(scene: Scene) -> None:
    assert scene.stream() == 1
    scene.gathering.spoken = True
    assert not scene.read(720, 10)


def test_a_stream_that_slows_down_waits_a_few_times_more(scene: Scene) -> None:
    assert scene.stream() == 1
    assert sum(scene.read(pause_s=WAIT_S) for _ in range(10 * READS)) == POOR - 1


def test_a_wait_that_pays_makes_up_for_those_before(scene: Scene) -> None:
    scene.stream()
    assert all(scene.read(messages=10 if n % POOR == 0 else 1) for n in range(4 * POOR))


def test_the_window_is_narrow_while_gathering_and_the_kernels_again_after_a_large_read(scene: Scene) -> None:
    scene.stream()
    assert scene.option(socket.SO_RCVBUF) == 2 * WINDOW_BYTES  # the kernel doubles it
    assert scene.option(gathering.SO_BUF_LOCK) == RCVBUF_LOCKED
    scene.read(LARGE_BYTES, 400)
    assert scene.option(gathering.SO_BUF_LOCK) == 0
    assert not scene.read()


class Clocked(WakefulLoop):
    """The loop of a gateway, whose clock the test sets. It does not wait."""

    now_s = 100.0
    unasked = 0  # reads after which no answer was expected

    def time(self) -> float:
        return self.now_s

    def expect_no_answer(self) -> None:
        self.unasked += 1
        super().expect_no_answer()

    def turns(self, count: int = 3) -> None:
        for _ in range(count):
            self.run_until_complete(asyncio.sleep(0))


class Peer:
    """A peer of a hub on a TCP socket, and the pipe to it."""

    def __init__(self, hub: Hub, loop: WakefulLoop) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.sock = socket.create_connection(server.getsockname())
            near, _ = server.accept()
        near.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        calls = Calls(hub.publish, hub.detach, hub.attach)
        self.pipe = StreamPipe(near, "peer", sp_framing(1 << 20), Bounds(1 << 20), calls)
        self.pipe.start(loop, 5.0)
        self.sock.sendall(HANDSHAKE)

    def say(self, body: bytes) -> None:
        self.sock.sendall(bytes(from_payloads([body]).data))


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clocked]:
    monkeypatch.setattr(gathering, "monotonic", lambda: 0.0)  # all that comes is as quick as can be
    with closing(Clocked()) as loop:
        yield loop


@pytest.fixture
def ear() -> Ear:
    return Ear(Hub())


@pytest.fixture
def both(loop: Clocked, ear: Ear) -> Iterator[list[Peer]]:
    """Yield two peers. Neither has been written to since the last turn of the loop."""
    made = [Peer(ear.hub, loop) for _ in range(2)]
    loop.turns()
    for peer in made:
        ear.hub.detach(peer.pipe)  # so that peers hear nothing of each other, as none that only sends does
    yield made
    for peer in made:
        peer.pipe.close()
        peer.sock.close()


def stream(peer: Peer, loop: Clocked) -> None:
    """Have a peer send messages, one a read, until the gateway waits before it reads more."""
    for n in range(READS + 2):  # the first read follows the handshake, which was written
        peer.say(b"stream %d" % n)
        loop.turns(1)


def test_a_stream_is_read_after_a_wait_and_others_at_once(both: list[Peer], loop: Clocked, ear: Ear) -> None:
    quick, lone = both
    with WATCH.on():
        stream(quick, loop)
        quick.say(b"gathers")
        lone.say(b"lone")
        loop.turns()
        assert ear.heard[-1] == b"lone"
        quick.say(b"too")
        loop.now_s += WAIT_S
        loop.turns()
    assert ear.heard[-3:] == [b"lone", b"gathers", b"too"]
    assert not WATCH.seen  # no sleep on the loop: it would be an audit event


def test_two_streams_do_not_wait_for_each_other(both: list[Peer], loop: Clocked, ear: Ear) -> None:
    one, other = both
    stream(one, loop)
    loop.now_s += WAIT_S / 2
    stream(other, loop)
    one.say(b"one")
    other.say(b"other")
    loop.now_s += WAIT_S / 2
    loop.turns()
    assert ear.heard[-1] == b"one"
    loop.now_s += WAIT_S / 2
    loop.turns()
    assert ear.heard[-1] == b"other"


def test_the_first_message_after_a_stream_does_not_wait(both: list[Peer], loop: Clocked, ear: Ear) -> None:
    stream(both[0], loop)
    loop.now_s += WAIT_S
    loop.turns()
    both[0].say(b"later")
    loop.turns()
    assert ear.heard[-1] == b"later"


def test_a_dialogue_at_full_speed_never_waits(both: list[Peer], loop: Clocked, ear: Ear) -> None:
    asking, answering = both
    for peer in both:
        ear.hub.attach(peer.pipe)
    for n in range(4 * READS):
        asking.say(b"ask %d" % n)
        loop.turns()
        answering.say(b"answer %d" % n)
        loop.turns()
        assert ear.heard[-2:] == [b"ask %d" % n, b"answer %d" % n]
    assert not loop.unasked


def test_the_loop_expects_no_answer_after_a_read_of_a_stream(both: list[Peer], loop: Clocked) -> None:
    for n in range(2 * ONE_WAY):
        both[0].say(b"stream %d" % n)
        loop.turns(1)
    assert ONE_WAY <= loop.unasked <= ONE_WAY + 2


def test_a_pipe_that_is_closed_or_paused_while_messages_gather_reads_nothing(
    both: list[Peer], loop: Clocked, ear: Ear
) -> None:
    for peer in both:
        stream(peer, loop)
    both[0].pipe.close()
    both[1].pipe.pause()
    both[1].say(b"paused")
    loop.now_s += WAIT_S
    loop.turns()
    assert b"paused" not in ear.heard
    both[1].pipe.resume()
    loop.turns()
    assert ear.heard[-1] == b"paused"


def test_what_waits_to_be_written_leaves_while_messages_gather(both: list[Peer], loop: Clocked) -> None:
    quick = both[0]
    stream(quick, loop)
    while not quick.pipe.stats.queued:
        quick.pipe.send(from_payloads([bytes(1 << 16)]))
    quick.sock.setblocking(False)
    due = quick.pipe.stats.offered * (8 + (1 << 16)) + len(HANDSHAKE)

    def read_all() -> bool:
        """Read what has come; for what has been read, more is written once the kernel has acknowledged it."""
        nonlocal due
        with suppress(BlockingIOError):
            due -= len(quick.sock.recv(1 << 20))
        loop.turns(1)
        return due <= 0

    wait(read_all)
    assert quick.pipe.stats.queued == 0
