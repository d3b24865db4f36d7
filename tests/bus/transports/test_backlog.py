"""The backlog of a stream socket: order, counts and bytes, on a real socket that accepts only parts."""

import asyncio
import contextlib
import random
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.tmq.wire import Cutter
from bus.transports.backlog import Backlog, Divide, Run
from bus.wire import sp
from bus.wire.batch import Batch, from_payloads
from bus.wire.websocket import frames

Pair = tuple[socket.socket, socket.socket]


def constant(size: int) -> bytes:
    """Return the bytes of equal keys."""
    return b"key." * (size // 4)


FORMS: dict[str, tuple[Callable[[Batch], bytes], Divide]] = {
    "tcp": (Batch.keep, sp.divide),
    "ipc": (sp.add_lead, partial(sp.divide, lead=1)),
    "ws": (frames.encode, frames.divide),
    "ws masked": (partial(frames.encode, keys=constant), frames.divide),
}


@pytest.fixture
def pair() -> Iterator[Pair]:
    near, far = socket.socketpair()
    near.setblocking(False)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with near, far:
        yield near, far


def memory_of(run: Run) -> int:
    """Return what Python has allocated for a run, its place in the queue included."""
    return sys.getsizeof(run) + sys.getsizeof(run.data) + 2 * sys.getsizeof(1 << 40) + 8


def drained(backlog: Backlog, pair: Pair) -> bytes:
    """Return all data that came out; check the accounts after each write."""
    received = b""
    while backlog:
        try:
            backlog.write(pair[0])
        except BlockingIOError:
            received += pair[1].recv(1000)
        assert backlog.bytes == sum(map(len, backlog))
        assert backlog.cost == sum(run.cost for run in backlog) >= sum(map(memory_of, backlog))
    pair[0].close()
    while data := pair[1].recv(65536):
        received += data
    return received


def test_all_comes_out_once_and_in_order_however_little_the_socket_takes(pair: Pair) -> None:
    stats = Stats()
    stats.offered = 1000
    backlog, parts = Backlog(stats), [bytes([i % 256]) * (1 + i * 7 % 5000) for i in range(200)]
    for part in parts:
        backlog.put(part, 5)
    assert (stats.queued, stats.queued_bytes) == (1000, sum(map(len, parts)))
    assert drained(backlog, pair) == b"".join(parts)
    assert (stats.sent, stats.sent_bytes) == (1000, sum(map(len, parts)))
    assert stats.queued == stats.queued_bytes == backlog.bytes == stats.balance() == 0


def test_what_is_dropped_leaves_the_accounts_of_others_alone(pair: Pair) -> None:
    stats = Stats()
    stats.offered = 7
    ours, others = Backlog(stats), Backlog(stats)
    ours.put(b"unsaid", 0)  # a frame that no ledger counts
    ours.put(b"three", 3)
    others.put(b"four", 4)
    ours.drop("peer gone")
    assert (stats.queued, stats.queued_bytes, stats.dropped) == (4, 4, {"peer gone": 3})
    assert (len(ours), ours.bytes, stats.balance()) == (0, 0, 0)
    ours.drop("peer gone")
    assert stats.dropped == {"peer gone": 3}


async def test_a_connection_counts_every_byte_that_the_socket_took(pair: Pair) -> None:
    connection = Connection(
        asyncio.get_running_loop(), pair[0], "peer", Cutter(), lambda _, __: None, lambda _: None
    )
    connection.send(bytes(1 << 19))
    stats = connection.stats
    assert 0 < stats.sent_bytes < 1 << 19
    assert stats.sent_bytes + stats.queued_bytes == 1 << 19
    connection.close()


def shed(backlog: Backlog, stats: Stats, said: list[bytes]) -> list[bytes]:
    """Shed a queue, and return what was shed by its count."""
    backlog.shed("fenced")
    return said[len(said) - stats.dropped["fenced"] :]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("encode", "divide"), FORMS.values(), ids=FORMS)
def test_what_is_purged_has_not_begun_and_what_has_begun_is_finished(
    pair: Pair, seed: int, encode: Callable[[Batch], bytes], divide: Divide
) -> None:
    chance, stats = random.Random(seed), Stats()
    backlog, said = Backlog(stats, divide), list[bytes]()
    for _ in range(30):
        some = [chance.randbytes(chance.choice((0, 1, 50, 3000))) for _ in range(chance.randint(1, 9))]
        batch = from_payloads(some)
        backlog.put(encode(batch), batch.count)
        said += some
    stats.offered = len(said)
    wire = b""
    for _ in range(chance.randrange(40)):
        with contextlib.suppress(BlockingIOError):
            backlog.write(pair[0])
        wire += pair[1].recv(chance.randint(1, 2000))
    purged = backlog.purge("fenced") if seed % 2 else shed(backlog, stats, said)
    with contextlib.suppress(BlockingIOError):
        backlog.write(pair[0])
    assert backlog.purge("fenced") == []  # a message that has begun is finished
    assert stats.dropped == ({"fenced": len(purged)} if purged else {})
    assert stats.balance() == 0
    wire += drained(backlog, pair)
    sent = said[: len(said) - len(purged)]
    assert said == sent + purged
    assert wire == encode(from_payloads(sent))
    assert (stats.sent, stats.queued, stats.queued_bytes) == (len(sent), 0, 0)


def test_what_was_queued_before_a_time_is_shed_and_what_has_begun_goes_on(pair: Pair) -> None:
    stats = Stats()
    stats.offered = 5
    backlog, whole = Backlog(stats, sp.divide), [from_payloads([bytes([n]) * 3000]).keep() for n in range(5)]
    backlog.put(whole[0], 1, now=1.0)
    backlog.put(whole[1], 1, written=5, now=1.5)
    for n in (2, 3, 4):
        backlog.put(whole[n], 1, now=float(n))
    backlog.shed("stale", 3.0)
    assert (stats.queued, stats.dropped) == (3, {"stale": 2})
    assert drained(backlog, pair) == whole[1][5:] + whole[3] + whole[4]
    assert stats.balance() == 0


def test_messages_that_come_much_later_are_in_a_run_of_their_own() -> None:
    backlog = Backlog(Stats())
    for now in (1.0, 1.4, 1.6, 1.7, 9.0):
        backlog.put(b"x", 1, now=now)
    assert [(run.count, run.since_s) for run in backlog] == [(2, 1.0), (2, 1.6), (1, 9.0)]
