"""The classic interface: the reference's functions in plain threads; and the fridge as three programs."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from bus import tmq
from bus.errors import FrameError, LinkError, TokenError
from bus.tmq import (
    TMQ_BRIDGE,
    TMQ_BROKER,
    TMQ_CLIENT,
    check_tokens,
    pattern,
    tmq_bind,
    tmq_broker,
    tmq_close,
    tmq_hash,
    tmq_init,
    tmq_publish,
    tmq_recv,
    tmq_recv_from,
    tmq_send,
    tmq_socket,
    tmq_subscribe,
    tmq_term,
    tmq_unpublish,
    tmq_unsubscribe,
)
from bus.tmq.classic import Context, Socket
from tests.helpers import ROOT

HERE = ("127.0.0.1", 0)
FRIDGE = ROOT / "examples" / "fridge"


@pytest.fixture
def context() -> Iterator[Context]:
    with tmq_init() as context:
        yield context


@pytest.fixture
def broker(context: Context) -> Socket:
    socket = tmq_socket(context, TMQ_BROKER)
    tmq_bind(socket, HERE)
    return socket


def client(context: Context, broker: Socket, role: int = TMQ_CLIENT) -> Socket:
    assert broker.address
    socket = tmq_socket(context, role)
    tmq_bind(socket, HERE)
    tmq_broker(socket, broker.address)
    return socket


def test_the_names_that_a_star_brings() -> None:
    names: dict[str, object] = {}
    exec("from bus.tmq import *", names)
    assert set(names) - {"__builtins__"} == set(tmq.__all__)
    needed = "init socket bind broker publish subscribe send recv hash unsubscribe unpublish close"
    assert {f"tmq_{name}" for name in needed.split()} <= set(tmq.__all__)


def test_tokens_are_those_of_the_reference() -> None:
    assert tmq_hash("short hash") == 0x20DC540E
    assert tmq_hash("this is a pretty long hash string") == 0xB4C660D0
    assert pattern("short hash", 7) == (0x20DC540E, 7)
    assert pattern() == ()
    with pytest.raises(TokenError):
        pattern(-1)
    with pytest.raises(TokenError):
        check_tokens(["a", 97])
    check_tokens(["fridge", "temp", "light"])


@pytest.mark.parametrize("subscribe_first", [True, False])
@pytest.mark.parametrize("role", [TMQ_CLIENT, TMQ_BRIDGE])
def test_from_one_to_the_other(context: Context, broker: Socket, subscribe_first: bool, role: int) -> None:
    pub, sub = client(context, broker, role), client(context, broker)
    if subscribe_first:
        tmq_subscribe(sub, ("fridge",))
    tmq_publish(pub, ("fridge", "temp"))
    if not subscribe_first:
        tmq_subscribe(sub, ("fridge",))
    assert tmq_recv(sub, ("fridge",)) is None
    if subscribe_first:  # otherwise the publisher learns of it later, and its messages until then are lost
        for number in range(1000):
            assert tmq_send(pub, ("fridge", "temp"), b"%d" % number) == 1
        got = [tmq_recv(sub, ("fridge",), timeout=20) for _ in range(1000)]
        assert got == [b"%d" % number for number in range(1000)]
    else:
        for _ in range(2000):
            tmq_send(pub, ("fridge", "temp"), b"x")
            found = tmq_recv_from(sub, ("fridge",), timeout=0.01)
            if found is not None:
                break
        assert found == (pattern("fridge", "temp"), b"x")


def test_each_subscription_has_its_own_queue(context: Context, broker: Socket) -> None:
    pub, sub = client(context, broker), client(context, broker)
    for wanted in ((), (1,), (1, 2)):
        tmq_subscribe(sub, wanted)
        tmq_subscribe(sub, wanted)  # a second time is no error
    tmq_publish(pub, (1, 2))
    tmq_publish(pub, (3,))
    tmq_send(pub, (1, 2), b"a")
    tmq_send(pub, (3,), b"b")
    assert [tmq_recv(sub, (), timeout=20) for _ in range(2)] == [b"a", b"b"]
    assert [tmq_recv(sub, wanted) for wanted in ((1,), (1, 2), ())] == [b"a", b"a", None]


def test_unsubscribing_and_unpublishing(context: Context, broker: Socket) -> None:
    pub, sub = client(context, broker), client(context, broker)
    tmq_subscribe(sub, (1,))
    tmq_publish(pub, (1,))
    assert len(pub.node().published[1,]) == 1
    tmq_unsubscribe(sub, (1,))
    with pytest.raises(ValueError, match="not subscribed"):
        tmq_recv(sub, (1,))
    tmq_unpublish(pub, (1,))
    with pytest.raises(ValueError, match="not published"):
        tmq_send(pub, (1,), b"x")


def test_wrong_arguments_raise_clear_errors(context: Context, broker: Socket) -> None:
    with pytest.raises(TypeError, match="role"):
        tmq_socket(context, 3)
    fresh = tmq_socket(context)
    with pytest.raises(LinkError, match="tmq_bind"):
        tmq_subscribe(fresh, (1,))
    with pytest.raises(LinkError, match="broker's socket"):
        tmq_publish(broker, (1,))
    with pytest.raises(ValueError, match="at least one"):
        tmq_broker(fresh)
    assert broker.address
    with pytest.raises(LinkError, match="already in use"):
        tmq_bind(tmq_socket(context, TMQ_BROKER), broker.address)
    pub = client(context, broker)
    with pytest.raises(TokenError, match="empty"):
        tmq_publish(pub, ())
    tmq_publish(pub, (1,))
    with pytest.raises(FrameError, match="2049"):
        tmq_send(pub, (1,), bytes(2049))
    tmq_close(pub)
    tmq_close(pub)
    with pytest.raises(LinkError, match="closed"):
        tmq_send(pub, (1,), b"x")


def test_a_broker_that_is_not_there_raises_nothing(context: Context, broker: Socket) -> None:
    """The reference raises the error of connect. Ours registers when a broker comes, here the second one."""
    assert broker.address
    sub = tmq_socket(context)
    tmq_bind(sub, HERE)
    tmq_broker(sub, ("127.0.0.1", 1), broker.address)
    tmq_subscribe(sub, (1,))
    assert sub.broker == broker.address


def test_bind_again_moves_and_keeps_what_was_declared(context: Context, broker: Socket) -> None:
    pub, sub = client(context, broker), client(context, broker)
    tmq_subscribe(sub, (1,))
    tmq_publish(pub, (1,))
    before = sub.address
    tmq_bind(sub, HERE)
    tmq_bind(pub, HERE)
    assert sub.address not in (None, before)
    tmq_subscribe(sub, (1,))
    for _ in range(2000):
        tmq_send(pub, (1,), b"x")
        if tmq_recv(sub, (1,), timeout=0.01):
            return
    pytest.fail("no message arrived within the time limit")


def test_what_was_sent_leaves_before_a_socket_closes(context: Context, broker: Socket) -> None:
    """All but the first message wait for the subscriber's greeting."""
    with client(context, broker) as sub:
        tmq_subscribe(sub, ())
        for round in range(10):
            pub = client(context, broker)
            tmq_publish(pub, (1,))
            for number in range(20):
                tmq_send(pub, (1,), b"%d:%d" % (round, number))
            tmq_close(pub)
            assert (pub.stats.offered, pub.stats.sent, pub.stats.balance()) == (20, 20, 0)
            got = [tmq_recv(sub, (), timeout=20) for _ in range(20)]
            assert got == [b"%d:%d" % (round, number) for number in range(20)]


def test_counts_go_on_where_a_socket_moves(context: Context, broker: Socket) -> None:
    pub = client(context, broker)
    tmq_publish(pub, (1,))
    for _ in range(3):
        tmq_send(pub, (1,), b"nobody hears it")
    tmq_bind(pub, HERE)
    assert (pub.stats.offered, pub.stats.dropped) == (3, {"no subscriber": 3})


def test_sending_from_many_threads(context: Context, broker: Socket) -> None:
    pub, sub = client(context, broker), client(context, broker)
    tmq_subscribe(sub, ())
    tmq_publish(pub, (1,))

    def send(who: int) -> None:
        for number in range(300):
            tmq_send(pub, (1,), b"%d:%d" % (who, number))

    threads = [threading.Thread(target=send, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    got = [tmq_recv(sub, (), timeout=20) for _ in range(1200)]
    for thread in threads:
        thread.join()
    for who in range(4):
        mine = [data for data in got if data and data.startswith(b"%d:" % who)]
        assert mine == [b"%d:%d" % (who, number) for number in range(300)]
    assert pub.stats.balance() == 0


def test_a_context_ends_its_thread() -> None:
    context = tmq_init()
    broker = tmq_socket(context, TMQ_BROKER)
    tmq_bind(broker, HERE)
    with client(context, broker) as sub:
        tmq_subscribe(sub, (1,))
    tmq_term(context)
    tmq_term(context)
    assert not any(thread.name == "tmq" and thread.is_alive() for thread in threading.enumerate())


def program(name: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, str(FRIDGE / name), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": "."},
    )


def test_the_fridge(context: Context, broker: Socket) -> None:
    """Three programs: the fridge is opened, the server notices it, the alarm sounds and stops."""
    assert broker.address
    where = f"{broker.address[0]}:{broker.address[1]}"
    alarm, server, fridge = (
        program("alarm.py", where),
        program("webserver.py", where),
        program("fridge.py", where, "0.01"),
    )
    try:
        assert alarm.stdout is not None
        assert server.stdout is not None
        assert [alarm.stdout.readline() for _ in range(3)] == ["BEEP\n", "silence\n", "BEEP\n"]
        seen = [server.stdout.readline() for _ in range(20)]
        assert any(line.startswith("temperature") for line in seen)
    finally:
        for process in (alarm, server, fridge):
            process.kill()
            process.communicate()
