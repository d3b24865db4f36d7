"""A process answers one trace at a time, says why it refuses, and forgets what nobody collects."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from appliance.explain import tracer
from appliance.explain.tracer import Tracer
from appliance.explain.words import Question
from bus.wire.frame import PUB, pack
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

MARK = "trace 0123456789abcdef"
FRAME = pack(PUB, (7,), MARK.encode())
WATCH = Question("watch", MARK, 1000)
COLLECT = Question("collect", MARK)
TEXT = """\
name: t
gateways: {{gw: {{address: 127.0.0.1}}}}
buses:
  p: {{on: gw, listen: [{{url: "tcp://127.0.0.1:{0}", peers: [{{send: a}}]}}]}}
  q: {{on: gw, listen: "tcp://127.0.0.1:{1}"}}
"""


@asynccontextmanager
async def asked() -> AsyncIterator[Tracer]:
    gateway = appliance_of(loads(TEXT.format(free_port(), free_port())), "gw")
    gateway.open(asyncio.get_running_loop())
    try:
        yield Tracer(gateway, "/t.yaml")
    finally:
        gateway.close()


async def test_a_trace_goes_from_watch_to_collect_and_another_can_follow() -> None:
    async with asked() as here:
        links = here.answer(Question("links")).links
        assert [link.partition(":")[0] for link in links] == ["bus p", "bus q"]
        for _ in range(2):
            assert not here.answer(WATCH).error
            assert not here.answer(Question("send", MARK, link=links[1], frame=FRAME)).error
            (hop,) = here.answer(COLLECT).hops
            assert (hop.part, hop.gateway, hop.stopped) == ("bus q", "gw", ())
        assert here.answer(COLLECT).error == "this trace has ended"


@pytest.mark.parametrize(
    ("question", "error"),
    [
        (Question("watch", "short", 1000), "a mark has 16 to 64 bytes, not 5"),
        (Question("watch", "x" * 65, 1000), "a mark has 16 to 64 bytes, not 65"),
        (Question("watch", MARK, 0), "a trace lasts for up to 60 s, not 0 s"),
        (Question("watch", MARK, 60_001), "a trace lasts for up to 60 s, not 60.001 s"),
        (Question("send", MARK, link="bus q: x", frame=FRAME), "this trace has ended"),
        (COLLECT, "this trace has ended"),
    ],
)
async def test_what_cannot_be_is_refused(question: Question, error: str) -> None:
    async with asked() as here:
        assert here.answer(question).error == error


async def test_a_second_trace_and_wrong_frames_are_refused_while_one_is_under_way() -> None:
    async with asked() as here:
        links = here.answer(Question("links")).links
        here.answer(WATCH)
        assert "another trace is under way" in here.answer(WATCH).error
        other = Question("send", "trace of somebody else", link=links[1], frame=FRAME)
        assert here.answer(other).error == "this trace has ended"
        assert "no frame" in here.answer(Question("send", MARK, link=links[1], frame=MARK.encode())).error
        assert "no frame" in here.answer(Question("send", MARK, link=links[1], frame=pack(PUB, (7,)))).error
        assert (
            "there is no link bus z" in here.answer(Question("send", MARK, link="bus z", frame=FRAME)).error
        )
        assert "no peer on its list" in here.answer(Question("send", MARK, link=links[0], frame=FRAME)).error
        assert here.answer(COLLECT).hops == ()


async def test_a_trace_that_nobody_collects_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "KEEP_S", 0.0)
    async with asked() as here:
        assert not here.answer(Question("watch", MARK, 1)).error
        await until(lambda: not here.answer(Question("watch", MARK, 1)).error)
