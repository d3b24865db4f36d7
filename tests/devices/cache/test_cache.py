"""The cache on its bus: it answers who asks, in bounded parts, and keeps what it knows over a reload."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from bus.asking import Answer, EndOfAnswer, Question, ask, read
from bus.hub import Hub
from bus.values import LastValues
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from devices.cache.answering import PART_BYTES, QUESTIONS, Answering
from devices.cache.device import CacheSpec
from devices.cache.service import Cache
from tests.helpers.peers import Ear, until


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    hub, cache = Hub("p"), Cache("c", CacheSpec(on="gw", cache=("p",), values=2000))
    loop = asyncio.get_running_loop()
    cache.open(hub, loop)
    cache.start(loop)
    yield hub
    cache.close()


async def answer(hub: Hub, question: Question) -> tuple[list[Answer], EndOfAnswer]:
    ear = Ear(hub)
    ear.say(ask(question))
    await until(lambda: ear.heard and isinstance(read(ear.heard[-1]), EndOfAnswer))
    said = [read(message) for message in ear.heard]
    ear.close()
    last = said.pop()
    assert isinstance(last, EndOfAnswer)
    return [one for one in said if isinstance(one, Answer)], last


async def test_who_asks_gets_the_newest_of_each_pattern_with_its_nonce(hub: Hub) -> None:
    speaker = Ear(hub)
    speaker.say(pack(PUB, (1, 2), b"old"), pack(PUB, (1, 3), b"x"), pack(PUB, (1, 2), b"new"), b"no frame")
    said, last = await answer(hub, Question(77, Pattern()))
    assert [(one.nonce, one.pattern, one.data) for one in said] == [(77, (1, 3), b"x"), (77, (1, 2), b"new")]
    assert last == EndOfAnswer(77, 2, 0)
    assert all(one.age_ms < 60_000 for one in said)
    said, last = await answer(hub, Question(78, Pattern(1, 2)))
    assert [one.data for one in said] == [b"new"]
    assert (await answer(hub, Question(79, Pattern(9))))[1] == EndOfAnswer(79, 0, 0)


async def test_a_long_answer_is_whole(hub: Hub) -> None:
    Ear(hub).say(*(pack(PUB, (7, number), bytes(200)) for number in range(1500)))
    said, last = await answer(hub, Question(1, Pattern(7)))
    assert last == EndOfAnswer(1, 1500, 0)
    assert [one.pattern[1] for one in said] == list(range(1500))


async def test_a_flood_of_questions_is_bounded_and_counted(hub: Hub) -> None:
    ear = Ear(hub)
    ear.say(*(ask(Question(number, Pattern())) for number in range(500)))
    port = hub.pipes[0]
    assert port.stats.rejected == {"questions full": 500 - QUESTIONS}
    await until(lambda: len(ear.heard) == QUESTIONS)


def test_one_part_is_bounded_and_patterns_without_room_are_counted() -> None:
    values = LastValues()
    values.take([pack(PUB, (number,), bytes(1000)) for number in range(200)], 10.0)
    values.take([pack(PUB, tuple(range(252)), b"long")], 10.0)
    answering = Answering(values)
    assert answering.take(Question(1, Pattern()))
    assert answering.take(Question(1, Pattern()))  # again, as it came by another way
    frames = list[bytes]()
    while answering.waits:
        part = answering.part(12.5)
        assert sum(map(len, part)) < PART_BYTES + 3072
        frames += part
    assert read(frames[-1]) == EndOfAnswer(1, 200, 1)
    first = read(frames[0])
    assert isinstance(first, Answer)
    assert (first.age_ms, len(frames)) == (2500, 201)


async def test_another_cache_goes_on_with_what_the_closed_one_knew() -> None:
    loop, hub = asyncio.get_running_loop(), Hub("p")
    old = Cache("c", CacheSpec(on="gw", cache=("p",)))
    old.open(hub, loop)
    old.start(loop)
    Ear(hub).say(*(pack(PUB, (number,), b"v") for number in range(5)))
    new = Cache("c", CacheSpec(on="gw", cache=("p",), values=2))
    new.follow(old)
    old.close()
    new.open(hub, loop)
    new.start(loop)
    said, _ = await answer(hub, Question(1, Pattern()))
    assert [one.pattern for one in said] == [(3,), (4,)]
    assert new.counts["values"] == 2
    new.close()
