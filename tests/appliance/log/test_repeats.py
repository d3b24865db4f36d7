"""Lines of one cause: the first at once, then at most one in ten seconds, with how many were held back."""

import asyncio
import logging
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from appliance.log.repeats import REPEAT_S, Repeats
from bus.hub import Hub
from bus.transports.listening import ListenLink


def record(text: str, **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord("buscoupler.bus", logging.WARNING, "", 0, text, None, None)
    made.__dict__.update(extra)
    return made


def test_the_first_of_a_cause_passes_and_the_others_are_counted() -> None:
    repeats = Repeats()
    assert [repeats.passes(record("no device"), now) for now in (0, 1, 2)] == [True, False, False]
    assert repeats.passes(record("no disk"), 2)
    assert repeats.due(REPEAT_S - 0.1) == []
    [held] = repeats.due(REPEAT_S)
    assert (held.last.getMessage(), held.more, held.seconds) == ("no device", 2, REPEAT_S)


def test_a_cause_that_goes_on_is_told_once_in_each_time() -> None:
    repeats, told = Repeats(), 0
    for second in range(100):
        told += repeats.passes(record("no device"), second)
        told += len(repeats.due(second))
    assert told == 100 / REPEAT_S
    assert repeats.passes(record("no device"), 200) is False
    repeats.due(200)
    repeats.due(300)
    assert repeats.passes(record("no device"), 301)


def test_peers_of_one_link_with_one_fault_are_one_cause() -> None:
    repeats = Repeats()
    passed = [
        repeats.passes(record(f"tcp://*:1 from 10.0.0.1:{n}: closed: reset", cause="tcp://*:1: reset"), 0)
        for n in range(100)
    ]
    assert passed.count(True) == 1
    [held] = repeats.rest(3)
    assert held.last.getMessage().endswith(":99: closed: reset")
    assert (held.more, held.seconds) == (99, 3)


def test_what_peers_of_one_link_say_makes_few_lines() -> None:
    """A stranger can be refused with other words each time, and so fill the log and the disk."""
    repeats = Repeats()

    def of_link(link: str, second: float) -> bool:
        said = f"{link}: not a frame; it said: hello {second}"
        return repeats.passes(record(said, cause=said, place=link), second)

    told = 0
    for number in range(10_000):
        told += of_link("tcp://*:1", number / 100)
        told += len(repeats.due(number / 100))
    assert told <= 20 * 100 / REPEAT_S
    assert of_link("tcp://*:2", 100.0)
    held = repeats.rest(100.0)
    assert [one.last.getMessage() for one in held] == ["tcp://*:1: not a frame; it said: hello 99.99"]
    assert of_link("tcp://*:1", 101.0)


def test_a_link_with_few_faults_later_has_its_room_again() -> None:
    repeats = Repeats()
    for second in (0.0, REPEAT_S, 2 * REPEAT_S):
        repeats.due(second)
        found = [repeats.passes(record(str(n), place="tcp"), second) for n in range(100)]
        assert found.count(True) >= 16, second
        repeats.due(second + REPEAT_S)
        repeats.due(second + 2 * REPEAT_S)


def test_so_many_causes_take_no_more_memory_and_make_no_more_lines() -> None:
    repeats = Repeats()
    passed = [repeats.passes(record(str(number)), 0) for number in range(1500)]
    assert passed == [True] * 1025 + [False] * 475
    assert repeats.passes(record("of a link", place="tcp"), 0)
    [held] = repeats.rest(1)
    assert (held.last.getMessage(), held.more) == ("1499", 474 + 1)


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
async def test_strangers_at_a_listener_make_few_lines(scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    link = ListenLink(f"{scheme}://127.0.0.1:0")
    link.open(Hub("b"), asyncio.get_running_loop())
    for number in range(40):
        await say(link.url, b"hello, this is stranger number %d\r\n\r\n" % number)
    repeats = Repeats()
    passed = [repeats.passes(one, 0) for one in caplog.records if one.levelno == logging.WARNING]
    link.close()
    assert len(passed) == 40
    assert passed.count(True) <= 17


async def say(url: str, text: bytes) -> None:
    """Say something to a listener as a new peer, and wait until it has closed the connection."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(text)
    writer.write_eof()
    with suppress(ConnectionError):
        while await reader.read(4096):
            pass
    writer.close()
