"""One suite for every link: all that a bus asks of a medium, whatever it is made of.

A test module takes it with `from tests.conformance.suite import *` and lists its `MAKERS`. It may be in a
project of its own, with a clone of this repository on its path (docs/add-a-medium.md).
"""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable
from inspect import signature
from typing import TypeVar

import pytest

from bridges import simulate
from bridges.media.wire import wire_of
from bus.hub import Pipe
from bus.wire.batch import Batch
from bus.wire.frame import TOKENS_MAX, pack
from tests.bridges.support import frame
from tests.conformance.pair import Maker, Pair, Side
from tests.helpers.peers import until
from tests.helpers.wires import Heard

Scenario = Callable[[Maker, Pair], Awaitable[None]]
T = TypeVar("T")
CONTRACT = "its Maker or its Pair (tests/conformance/pair.py)"
CLOGGED = "test_a_clogged_peer_stalls_nobody_and_each_drop_is_counted"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test with each of the module's `MAKERS`, but for what the maker leaves out with a reason."""
    name = metafunc.function.__name__
    if "maker" in signature(metafunc.function).parameters:
        params = [
            pytest.param(
                maker,
                id=maker.name,
                marks=[pytest.mark.skip(reason=f"{maker}: {why}")] if (why := maker.missing()) else [],
            )
            for maker in metafunc.module.MAKERS
            if name not in maker.left_out
        ]
        metafunc.parametrize("maker", params)


def conformance(scenario: Scenario) -> Callable[[Maker, pytest.TempPathFactory], None]:
    """A test that runs `scenario` on a pair, on the loop that the maker needs, and checks the ledger."""

    @functools.wraps(scenario)
    def test(maker: Maker, tmp_path_factory: pytest.TempPathFactory) -> None:
        path = tmp_path_factory.mktemp("s") / "s"  # short: a local socket's is at most 107 bytes long

        async def main() -> None:
            make = _given("clogged", maker.clogged) if scenario.__name__ == CLOGGED else maker.pair
            pair = make(path)
            try:
                await pair.up()
                await scenario(maker, pair)
                pair.check_ledger()
            finally:
                pair.close()
                await asyncio.sleep(0)
            pair.check_ledger()
            assert [side.count("queued") for side in (pair.near, pair.far)] == [0, 0]
            assert [side.hub.kept for side in (pair.near, pair.far)] == [[], []], "ledgers of closed links"

        simulate.run(main()) if maker.simulated else asyncio.run(main())

    test.__signature__ = signature(_arguments)  # type: ignore[attr-defined]
    return test


def _given(name: str, value: T | None) -> T:
    """Return what a maker or its pair has for a test. Fail if it is None."""
    assert value is not None, f"needs `{name}` of {CONTRACT}; or `left_out` names the test, with a reason"
    return value


def _arguments(maker: Maker, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Stands for a test's arguments, which pytest reads."""


async def cross(maker: Maker, source: Side, sink: Side, messages: list[bytes]) -> None:
    """Send `messages`, no more at once than the medium can hold, and expect them all, in order."""
    start = len(sink.heard.messages)
    for first in range(0, len(messages), maker.window):
        source.say(*messages[first : first + maker.window])
        due = start + min(len(messages), first + maker.window)
        await until(lambda due=due: len(sink.heard.messages) >= due)  # type: ignore[misc]
    assert sink.heard.messages[start:] == messages


@conformance
async def test_a_tap_of_the_wire_hears_both_ways_where_the_medium_shows_it(maker: Maker, pair: Pair) -> None:
    found = [side for side in (pair.near, pair.far) if wire_of(side.link) is not None]
    if not found or maker.name.removeprefix("simulated-").startswith("i2c"):  # whose mailboxes are polled
        return
    heard = Heard()
    wire = wire_of(found[0].link)
    assert wire is not None
    wire.tap(heard)
    for source, sink in ((pair.near, pair.far), (pair.far, pair.near)):
        await cross(maker, source, sink, [maker.make(maker.tokens_min * 4 + 20, 5)])
    await until(lambda: bool(heard.came and heard.went))
    wire.untap(heard)
    before = heard.came, heard.went
    await cross(maker, pair.near, pair.far, [maker.make(maker.tokens_min * 4 + 20, 6)])
    assert (heard.came, heard.went) == before


@conformance
async def test_order_is_kept_both_ways(maker: Maker, pair: Pair) -> None:
    count = int(120 * maker.share)
    messages = [maker.make(4 + (seed * 37) % 200, seed) for seed in range(count)]
    await cross(maker, pair.near, pair.far, messages)
    await cross(maker, pair.far, pair.near, messages[::-1])
    await until(lambda: pair.near.count("sent") == pair.far.count("sent") == count)
    assert pair.near.count("received") == pair.far.count("received") == count
    assert not pair.near.reasons("dropped")
    assert not pair.far.reasons("dropped")


@conformance
async def test_every_size_around_the_mtu(maker: Maker, pair: Pair) -> None:
    large = {3071, 3072} if maker.share == 1 else {3072}
    sizes = sorted({4, maker.mtu - 1, maker.mtu, maker.mtu + 1, 2 * maker.mtu} | large)
    messages = [maker.sizes(size) for size in sizes if maker.sizes is not frame or size <= 3072]
    await cross(maker, pair.near, pair.far, messages)
    await cross(maker, pair.far, pair.near, messages)


@conformance
async def test_every_token_count(maker: Maker, pair: Pair) -> None:
    counts = range(maker.tokens_min, TOKENS_MAX + 1, maker.token_step)
    messages = [pack(1, range(count), b"\0" * (count % 5)) for count in counts]
    await cross(maker, pair.near, pair.far, messages)


@conformance
async def test_each_pipe_names_its_link(maker: Maker, pair: Pair) -> None:
    for side in (pair.near, pair.far):
        if side.link is not None:
            assert {pipe.link for pipe in side.hub.pipes[2:]} == {side.link.name}


@conformance
async def test_equal_frames_in_a_row_all_arrive(maker: Maker, pair: Pair) -> None:
    messages = [maker.make(20)] * int(100 * maker.share)
    await cross(maker, pair.near, pair.far, messages)
    await cross(maker, pair.far, pair.near, messages)


@conformance
async def test_nothing_is_echoed(maker: Maker, pair: Pair) -> None:
    count = int(20 * maker.share)
    for seed in range(count):
        await cross(maker, pair.near, pair.far, [maker.make(30, seed)])
        await cross(maker, pair.far, pair.near, [maker.make(30, seed)])  # the same bytes, and not an echo
    assert len(pair.near.heard.messages) == len(pair.far.heard.messages) == count


@conformance
async def test_garbage_then_the_next_frame_but_one_at_the_latest(maker: Maker, pair: Pair) -> None:
    garbage = _given("garbage", pair.garbage)
    for round_ in range(3):
        await cross(maker, pair.far, pair.near, [maker.make(40, round_)])
        known = len(pair.near.heard.messages)
        await garbage()
        await pair.up()
        pair.far.say(maker.make(50, round_))
        pair.far.say(maker.make(60, round_))
        await until(lambda: pair.near.heard.messages[-1:] == [maker.make(60, round_)])  # noqa: B023
        assert pair.near.heard.messages[known:] in (
            [maker.make(50, round_), maker.make(60, round_)],
            [maker.make(60, round_)],
        )
    await cross(maker, pair.near, pair.far, [maker.make(70)])


@conformance
async def test_opened_and_closed_twice(maker: Maker, pair: Pair) -> None:
    for round_ in range(2):
        pair.near.close()
        pair.near.close()
        await until(lambda: not pair.near.up)
        pair.near.open()
        await pair.up()
        await cross(maker, pair.near, pair.far, [maker.make(40, round_)])
        await cross(maker, pair.far, pair.near, [maker.make(40, round_)])


@conformance
async def test_a_link_says_what_it_is_and_how_it_is(maker: Maker, pair: Pair) -> None:
    fresh, link = pair.near.made(), pair.near.link
    assert (fresh.state, fresh.fault, fresh.losses) == ("closed", "", 0)
    assert fresh.name
    assert fresh.url
    assert fresh.condition in ("", "unknown")
    assert fresh.queue_bytes > 0
    fresh.close()
    assert fresh.state == "closed"
    assert link is not None
    await until(lambda: link.state == "up")
    assert (link.fault, link.losses) == ("", 0)
    assert "://" not in link.url or not link.url.endswith(":0")  # the port that was bound
    pair.near.close()
    assert (link.state, link.losses) == ("closed", 0)


@conformance
async def test_a_link_takes_over_the_queue_of_another_without_a_loss_or_says_that_it_cannot(
    maker: Maker, pair: Pair
) -> None:
    link, fresh, pipes = pair.near.link, pair.near.made(), pair.near.hub.pipes
    assert link is not None
    messages = [maker.make(40, seed) for seed in range(3 * min(10, maker.window))]
    pair.near.say(*messages[: maker.window])
    if not link.revise(fresh):
        return
    await until(lambda: pair.far.heard.messages == messages[: maker.window])
    assert pair.near.hub.pipes == pipes
    assert fresh.state == "closed"
    for message in messages[maker.window :]:
        await cross(maker, pair.near, pair.far, [message])
        assert link.revise(pair.near.made())
        await cross(maker, pair.far, pair.near, [message])
    assert pair.near.hub.pipes == pipes
    assert (link.state, link.losses) == ("up", 0)


@conformance
async def test_a_loss_is_counted_and_has_a_reason(maker: Maker, pair: Pair) -> None:
    side, lose, regain = _given("loses", pair.loses)
    link = side.link
    assert link is not None
    await until(lambda: link.state == "up")
    for losses in range(1, 3):
        await lose()
        await until(lambda: link.losses == losses)  # noqa: B023
        assert link.fault
        await until(lambda: link.state != "up")
        await regain()
        await until(lambda: link.state == "up")
    side.close()
    assert (link.state, link.losses) == ("closed", 2)


class Dues:
    """What a hub had to offer the link of its side: once for each pipe but the sender, else once."""

    def __init__(self, side: Side) -> None:
        self.side, self.due = side, 0
        self.before = self.offered()
        side.hub.tap(self._count)

    def offered(self) -> int:
        link = self.side.link
        account = self.side.hub.accounts().get(link.name) if link is not None else None
        return account.stats.offered if account is not None else 0

    def _count(self, batch: Batch, origin: Pipe | None) -> None:
        link = self.side.link
        if link is not None:
            pipes = [pipe for pipe in self.side.hub.pipes if pipe.link == link.name]
            others = sum(pipe is not origin for pipe in pipes)
            self.due += batch.count * (others if pipes else link.state != "closed")

    def turn(self) -> None:
        """Open the link, or close it."""
        if self.side.link is not None:
            self.side.open() if self.side.link.state == "closed" else self.side.close()


@conformance
async def test_whatever_happens_a_link_accounts_for_all_that_it_is_due(maker: Maker, pair: Pair) -> None:
    chance, dues = random.Random(maker.name), [Dues(pair.near), Dues(pair.far)]
    faults = pair.loses[1:] if pair.loses else ()
    broken = False
    for _ in range(60):
        dice = chance.random()
        if dice < 0.6:
            chance.choice(dues).side.say(*(maker.make(40, seed) for seed in range(chance.randint(1, 3))))
        elif dice < 0.75 and not broken:
            chance.choice(dues).turn()
        elif dice < 0.85 and faults and (broken or (pair.near.up and pair.far.up)):
            await faults[broken]()
            broken = not broken
        else:
            await asyncio.sleep(0.2 if maker.simulated else 0.002)
        pair.check_ledger()
        assert [one.offered() - one.before for one in dues] == [one.due for one in dues]
    for one in dues:
        assert one.side.link is None or one.side.link.name in one.side.hub.accounts()


@conformance
async def test_a_peer_gone_in_mid_frame_and_back(maker: Maker, pair: Pair) -> None:
    cut, mend = _given("cut", pair.cut), _given("mend", pair.mend)
    await cross(maker, pair.far, pair.near, [maker.make(40)])
    await cut()
    assert pair.near.heard.messages == [maker.make(40)]
    await mend()
    await pair.up()
    await until(lambda: pair.near.heard.messages == [maker.make(40), *pair.back])
    await cross(maker, pair.far, pair.near, [maker.make(60)])
    await cross(maker, pair.near, pair.far, [maker.make(60)])


@conformance
async def test_a_clogged_peer_stalls_nobody_and_each_drop_is_counted(maker: Maker, pair: Pair) -> None:
    pair.clog()
    peers, count, messages = len(pair.near.hub.pipes) - 2, 0, [maker.make(1024, seed) for seed in range(10)]
    while not pair.near.reasons("dropped").get("queue full", 0) > 50:
        pair.near.say(*messages)
        count += 10
        assert len(pair.near.other.messages) == count  # at once: nobody waited for the clogged one
        pair.check_ledger()
        assert count < 100_000
        await asyncio.sleep(0)
    dropped = pair.near.reasons("dropped")
    assert set(dropped) <= {"queue full", "stale"}
    assert pair.near.count("offered") == count * peers
    assert pair.near.count("queued") > 0
    if peers > 1:  # the other one was served meanwhile
        await until(lambda: len(pair.far.heard.messages) == max(s.sent for s in pair.near.hub.ledgers))
    for pipe in pair.near.hub.pipes[2:]:
        queued, purged = pipe.stats.queued, pipe.purge("fenced")
        assert pipe.stats.dropped.get("fenced", 0) == len(purged)
        assert set(purged) <= set(messages)
        assert purged or not queued or pipe not in pair.near.hub.pipes  # taken back, or closed


def test_what_is_left_out_is_a_test_and_has_a_reason(request: pytest.FixtureRequest) -> None:
    tests = {name for name in globals() if name.startswith("test_")}
    for maker in request.module.MAKERS:
        assert set(maker.left_out) <= tests, maker
        assert all(len(reason) > 10 for reason in maker.left_out.values()), maker
        if CLOGGED in maker.left_out:
            assert maker.clogged is None, maker
        else:
            _given("clogged", maker.clogged)
