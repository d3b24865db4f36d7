"""`buscoupler values` asks the caches of a running gateway."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bus.asking import EndOfAnswer, Question, end, read, say
from bus.hub import Hub
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, Frame, pack
from bus.wire.pattern import Pattern
from tests.appliance.probe.support import command, device
from tests.devices.tap.tap_support import member
from tests.helpers.appliances import appliance_of
from tests.helpers.clocks import wait_in_vain
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TEXT = """\
name: t
gateways: {{gw: }}
buses: {{p: {{on: gw, listen: "tcp://127.0.0.1:{0}"}}}}
devices: {{memory: {{on: gw, cache: p}}}}
"""


@asynccontextmanager
async def running() -> AsyncIterator[tuple[Hub, str]]:
    port = free_port()
    appliance = appliance_of(loads(TEXT.format(port), "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        async with member(f"tcp://127.0.0.1:{port}") as (hub, _):
            yield hub, f"tcp://127.0.0.1:{port}"
    finally:
        appliance.close()


async def test_it_prints_the_newest_of_each_pattern_with_its_age(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("--names", "fridge,temp,door")
    async with running() as (hub, url):
        fridge = [pack(PUB, Pattern("fridge", name), b"1") for name in ("temp", "door", "temp")]
        hub.publish(from_payloads([*fridge, pack(PUB, Pattern("oven"), b"\xff")]))
        assert await command("values", url, "--pattern", "fridge", *names) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split(maxsplit=3)[3] for line in lines] == ["fridge/door 1", "fridge/temp 1"]
        assert await command("values", url, "--count", "1", "--json") == 0
        (found,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert found["age_ms"] >= 0
        assert (found["tokens"], found["text"], found["hex"]) == (list(Pattern("oven")), None, "ff")


async def test_without_a_cache_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_in_vain(monkeypatch)
    async with device() as (_, url):
        assert await command("values", url, "--timeout", "0.2") == 1
    assert "no cache on this bus answered within 0.2 s" in capsys.readouterr().err


async def test_without_a_bus_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert await command("values", f"tcp://127.0.0.1:{free_port()}", "--timeout", "0.2") == 1
    assert "no bus answered within 0.2 s" in capsys.readouterr().err


async def test_values_that_are_lost_or_left_out_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Of two values one is lost, and another answer, with another nonce, is of somebody else."""
    async with device() as (ear, url):
        task = asyncio.ensure_future(command("values", url))
        while not any(isinstance(read(message), Question) for message in ear.heard):
            await asyncio.sleep(0)
        question = read(ear.heard[-1])
        assert isinstance(question, Question)
        other = say(question.nonce ^ 1, 5, Frame(PUB, (9,), b"x"))
        ear.say(other, say(question.nonce, 5, Frame(PUB, (1,), b"x")), end(EndOfAnswer(question.nonce, 2, 3)))
        assert await task == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err == (
        "buscoupler values: 1 values were lost on the way: a queue was full\n"
        "buscoupler values: 3 values were left out: their patterns are too long for an answer\n"
    )
