"""The budget of a process: the fullest let go first, and no queue takes more memory than its bound."""

import asyncio
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from bus.transports.backlog import SMALL_BYTES, cost_of
from bus.transports.budget import Budget
from bus.transports.framing import sp_framing
from bus.transports.stream import Bounds, Calls, StreamPipe
from bus.wire.batch import LENGTH, from_payloads

HELLO = bytes.fromhex("0053500000700000")


@contextmanager
def stuck(budget: Budget, queue_bytes: int, message_bytes: int) -> Iterator[tuple[StreamPipe, socket.socket]]:
    """Yield a pipe to a peer that reads nothing, with full buffers in the kernel, and that peer."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    framing = sp_framing(message_bytes)
    pipe = StreamPipe(
        ours, "stuck", framing, Bounds(queue_bytes, memory=budget), Calls(lambda *_: None, lambda _: None)
    )
    theirs.sendall(HELLO)
    with ours, theirs:
        pipe.start(asyncio.get_running_loop(), 5.0)
        assert pipe.ready
        yield pipe, theirs
        pipe.close()


@pytest.mark.parametrize("seed", range(30))
async def test_no_queue_exceeds_its_bound_by_more_than_one_message(seed: int) -> None:
    chance, budget = random.Random(seed), Budget(1 << 40)
    longest = chance.choice((16, 300, 5000, 60_000))
    bound = longest * chance.choice((1, 2, 40))
    sizes = [chance.randint(0, longest) for _ in range(3)] + [longest, 0]
    with stuck(budget, bound, longest) as (pipe, peer):
        peer.setblocking(False)
        for _ in range(400):
            some = [bytes(chance.choice(sizes)) for _ in range(chance.choice((1, 1, 1, 50)))]
            pipe.send(from_payloads(some))
            if chance.random() < 0.1:
                with suppress(BlockingIOError):
                    peer.recv(chance.randint(1, 10_000))
                await asyncio.sleep(0)  # the loop lets it write
            assert pipe.held_bytes == budget.held_bytes
            assert pipe.held_bytes <= cost_of(bound + 8) + cost_of(longest + 8)
            assert pipe.stats.balance() == 0
        assert pipe.stats.dropped["queue full"]
    assert budget.held_bytes == 0


async def test_tiny_messages_cost_little_more_than_their_bytes() -> None:
    with stuck(Budget(1 << 40), 1 << 20, 1 << 20) as (pipe, _):
        pipe.send(from_payloads([bytes(500_000)]))
        before, count = pipe.held_bytes, 20_000
        for _ in range(count):
            pipe.send(from_payloads([b"12345678"]))
        assert pipe.stats.queued == count + 1
        assert pipe.held_bytes - before < 1.2 * 16 * count


async def test_over_the_budget_the_fullest_queue_is_shed_first() -> None:
    budget = Budget(1_000_000)
    with stuck(budget, 1 << 20, 1 << 20) as (full, _), stuck(budget, 1 << 20, 1 << 20) as (fuller, _):
        full.send(from_payloads([bytes(100_000)] * 3))
        fuller.send(from_payloads([bytes(100_000)] * 6))
        assert not full.stats.dropped
        full.send(from_payloads([bytes(100_000)]))  # together they would hold more than the budget
        assert set(fuller.stats.dropped) == {"memory"}
        assert not full.stats.dropped
        assert budget.held_bytes == full.held_bytes + fuller.held_bytes < 1_000_000
        assert full.stats.balance() == fuller.stats.balance() == 0


async def test_a_lower_budget_counts_at_once() -> None:
    budget = Budget(1 << 40)
    with stuck(budget, 1 << 20, 1 << 20) as (pipe, _):
        pipe.send(from_payloads([bytes(100_000)] * 9))
        budget.revise(500_000)
        assert pipe.stats.dropped["memory"] == 8  # the first has begun
        assert budget.held_bytes < 500_000


async def test_peers_that_never_finish_their_messages_are_charged_and_let_go() -> None:
    budget = Budget(1_000_000)
    with stuck(budget, 1 << 20, 1 << 20) as (one, first), stuck(budget, 1 << 20, 1 << 20) as (two, second):
        for pipe, peer, size in ((one, first, 300_000), (two, second, 900_000)):
            peer.setblocking(False)
            begun = memoryview(LENGTH.pack(1_000_000) + bytes(size))
            while begun and not pipe.closed:
                with suppress(BlockingIOError):
                    begun = begun[peer.send(begun) :]
                pipe.read()
            for _ in range(100):  # a read brings a portion
                pipe.read()
        assert two.closed
        assert two.fault == "the process holds too much memory for its peers"
        assert not one.closed
        assert 300_000 <= budget.held_bytes == one.held_bytes <= 1_000_000


async def test_short_messages_that_are_not_whole_are_not_charged() -> None:
    budget = Budget(1 << 40)
    with stuck(budget, 1 << 20, 1 << 20) as (pipe, peer):
        peer.sendall(LENGTH.pack(10_000) + bytes(SMALL_BYTES))
        pipe.read()
        assert pipe.held_bytes == budget.held_bytes == 0
