"""`query` as a user runs it: real brokers, what it prints, brokers that die, and what is none."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.helpers.ports import free_port

pytest.importorskip("msgpack")
pytest.importorskip("lark")
pytest.importorskip("re2")

from appliance.commandline.cli import main
from devices.syndication.caller import Caller
from tests.appliance.asking import asked, asking
from tests.appliance.probe.support import command
from tests.devices.syndication.tcp_clients import home
from tests.helpers.programs import process

THERMOSTATS = "select distinct Room where has Thermostat"


@asynccontextmanager
async def broker(port: int | None = None) -> AsyncIterator[str]:
    url = f"tcp://127.0.0.1:{port or free_port()}"
    async with process("syndicate", url):
        yield url


async def describe(caller: Caller) -> None:
    """Publish for two producers, and wait until the broker knows both."""
    await caller.publish("a", {"Room": "410", "Thermostat": True}, 21.5)
    await caller.publish("b", {"Room": ["12", "13"], "Thermostat": "on", "Floor": 2}, None)
    await caller.publish("c\x1b[2J", {"Floor": 10, "Odd": {"x": float("nan")}}, b"\0")
    await caller.subscribe("")
    assert await caller.hear()


async def test_it_prints_the_rooms_with_thermostats_one_a_line_and_ends() -> None:
    async with broker() as url, Caller(url) as producer:
        await describe(producer)
        assert await asked(url, THERMOSTATS) == (0, ["12", "13", "410"], "")


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["select distinct Floor"], ["2", "10"]),
        (["Room = '13'"], ["b"]),
        ([""], ['"c\\u001b[2J"', "a", "b"]),
        (["has Nothing"], []),
        (["--json", "select distinct Odd"], ['{"x": {"float": "nan"}}']),
        (["--json", ""], ['"c\\u001b[2J"', '"a"', '"b"']),
    ],
)
async def test_values_and_ids_as_text_and_as_json(
    words: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    async with home() as here, Caller(here.service.urls[0]) as producer:
        await describe(producer)
        assert await command("query", here.service.urls[0], *words) == 0
    assert capsys.readouterr().out.splitlines() == lines


async def test_a_wrong_query_is_wrong_use_and_its_place_is_shown() -> None:
    async with broker() as url:
        status, output, errors = await asked(url, "select distinct Room where Room = 410a")
        assert (status, output) == (2, [])
        assert errors.splitlines()[-1].startswith("buscoupler query: error: character 35: expected a value")


async def test_a_selection_is_followed_until_a_signal() -> None:
    async with broker() as url, Caller(url) as producer:
        await describe(producer)
        async with asking(url, THERMOSTATS, "--follow") as asker:
            assert await asker.lines(3) == ["+ 12", "+ 13", "+ 410"]
            await producer.publish("b", {"Room": "14"}, 1)
            await producer.publish("a", {"Thermostat": None}, 1)
            assert await asker.lines(4) == ["+ 14", "- 12", "- 13", "- 410"]
            asker.process.send_signal(signal.SIGINT)
            assert await asker.end() == (0, [], "")


async def test_a_query_is_followed_with_publications() -> None:
    async with broker() as url, Caller(url) as producer:
        await describe(producer)
        async with (
            asking(url, "has Room", "--follow") as words,
            asking(url, "has Room", "--follow", "--json") as records,
        ):
            assert await words.lines(2) == ["+ a", "+ b"]
            assert await records.lines(2) == ['{"new": "a"}', '{"new": "b"}']
            await producer.publish("a", {}, [21.5, "x"])
            await producer.publish("b", {"Unit": "C"}, "a\nb")
            await producer.publish("a", {"Room": None}, 1)
            assert await words.lines(3) == ['= a [21.5, "x"]', '= b "a\\nb" {"Unit": "C"}', "- a"]
            assert list(map(json.loads, await records.lines(3))) == [
                {"id": "a", "metadata": {}, "value": [21.5, "x"]},
                {"id": "b", "metadata": {"Unit": "C"}, "value": "a\nb"},
                {"gone": "a"},
            ]
            for asker in (words, records):
                asker.process.send_signal(signal.SIGTERM)
                assert await asker.end() == (0, [], "")


async def test_a_broker_that_is_killed_is_dialled_until_it_is_back() -> None:
    port = free_port()
    url, held = f"tcp://127.0.0.1:{port}", set[str]()
    async with asking(url, "", "--follow") as asker:
        for ids in ("ab", "bc"):
            async with broker(port), Caller(url) as producer:
                for id in ids:
                    await producer.publish(id, {}, 1)
                while held != set(ids):
                    ((sign, id, *_),) = map(str.split, await asker.lines(1))
                    held = held | {id} if sign == "+" else held - {id} if sign == "-" else held
        asker.process.send_signal(signal.SIGINT)
        status, _, errors = await asker.end()
    assert status == 0
    assert f"{url}: the broker closed the connection; dialling again" in errors


# no answer


def test_without_a_broker_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    assert main(["query", url, "", "--timeout", "0.05"]) == 1
    assert capsys.readouterr() == ("", f"buscoupler: {url}: Connection refused\n")


async def test_a_bus_is_no_broker() -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    async with process("device", url):
        words = "this is no syndication broker: it says 00 53 50 00 00 70 00 00"
        assert await asked(url, "") == (1, [], f"buscoupler: {url}: {words}\n")


async def test_a_signal_before_the_answer_cuts_it_short() -> None:
    met = asyncio.Event()

    async def be_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        met.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(be_silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for number, status in {signal.SIGINT: 130, signal.SIGTERM: 143}.items():
        met.clear()
        async with asking(f"tcp://127.0.0.1:{port}", "", "--follow") as asker:
            await met.wait()
            asker.process.send_signal(number)
            assert await asker.end() == (status, [], "")
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["ws://127.0.0.1:1", ""], "a syndication broker is at tcp://HOST:PORT"),
        (["tcp://127.0.0.1", ""], "the address has no port"),
        (["tcp://127.0.0.1:1", "", "--timeout", "0"], "not a number above 0"),
        (["tcp://127.0.0.1:1", "has", "Room"], "unrecognized arguments: Room"),
        (["tcp://127.0.0.1:1"], "the following arguments are required: QUERY"),
    ],
)
def test_wrong_use(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["query", *words])
    assert stop.value.code == 2
    assert why in capsys.readouterr().err
