"""A TCP connection to a device that is asked, of a gateway that may ask and of one that stands by."""

import asyncio
import socket
from asyncio import TimerHandle
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridges.media.byte_stream import BytePort
from bridges.media.tcp.medium import Tcp
from bridges.media.tcp.spoken import TcpSpoken, tcp_spoken
from bridges.protocols.modbus.protocol import Modbus, Register
from bus.hub import Hub
from tests.helpers.peers import until
from tests.helpers.ports import free_port

RECORD = Modbus(registers=(Register(register=5, pattern=("a",)),), poll_ms=60_000)


class Trying(TcpSpoken):
    """A link that counts how often it tries to connect."""

    tries = 0

    def _open_port(self) -> BytePort:
        self.tries += 1
        return super()._open_port()


class Place:
    """A place where a device may be, and a gateway that may ask it: `may`."""

    def __init__(self, may: bool, retry_s: float = 0.01) -> None:
        self.port, self.may, self.came = free_port(), may, 0
        self.most = 8  # connections that the device takes; it closes others at once
        self.live = set[asyncio.StreamWriter]()
        self.closes = self.greets = False
        self.says = b""  # before it closes
        options = Tcp(host="127.0.0.1", port=self.port, mode="dial")
        retry: dict[str, Any] = {"retry_min_s": retry_s, "retry_max_s": 2 * retry_s}
        self.link = Trying(options, RECORD, may_act=lambda _: self.may, **retry)

    @property
    def tries(self) -> int:
        return self.link.tries

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came += 1
        if self.closes or len(self.live) >= self.most:
            writer.write(self.says)
            return writer.close()
        self.live.add(writer)
        writer.write(b"\0" if self.greets else b"")
        while await reader.read(256):
            pass
        self.live.discard(writer)
        return writer.close()

    @asynccontextmanager
    async def device(self) -> AsyncIterator[None]:
        """Have a device there, which says nothing."""
        async with await asyncio.start_server(self._serve, "127.0.0.1", self.port) as server:
            yield
            server.close()
            for one in list(self.live):
                one.transport.abort()

    async def more_tries(self) -> None:
        before = self.tries
        await until(lambda: self.tries > before + 2)


@asynccontextmanager
async def opened(may: bool = True, retry_s: float = 0.01) -> AsyncIterator[Place]:
    place = Place(may, retry_s)
    place.link.open(Hub(), asyncio.get_running_loop())
    try:
        yield place
    finally:
        place.link.close()


async def test_a_gateway_that_could_not_connect_is_no_candidate_while_it_stands_by_and_tries_on() -> None:
    async with opened() as place:
        await until(lambda: place.tries > 1 and place.link.state == "waiting")
        place.may = False
        await place.more_tries()
        assert place.link.state != "up"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a connection count as one that lasted soon."""
    monkeypatch.setattr("bridges.media.tcp.spoken.SERVED_S", 0.05)


@pytest.mark.usefixtures("hasty")
async def test_a_standby_that_could_connect_closes_then_and_counts_as_up() -> None:
    async with opened() as place:
        await until(lambda: place.link.state == "waiting")
        place.may = False
        async with place.device():
            await until(lambda: place.link.state == "up" and not place.live and place.came > 0)
            assert (place.link.fault, place.link.pipe, place.came) == ("", None, 1)
            place.may = True
            await until(lambda: place.link.pipe is not None and len(place.live) == 1)
        assert place.came == 2
        assert place.link.losses <= 1  # that of the device which has gone


async def test_a_standby_whose_connection_is_closed_at_once_is_no_candidate() -> None:
    """Of two gateways at such a device each would be up whenever the other had tried in vain."""
    async with opened() as place:
        place.closes = True
        async with place.device():
            await until(lambda: place.came > 2)
            place.may = False
            await until(lambda: place.link.state != "up")
            before, states = place.came, set[str]()

            def has_tried() -> bool:
                states.add(place.link.state)
                return place.came > before + 5

            await until(has_tried)
            assert "up" not in states
            assert place.link.fault == "closed by the other end"
            place.closes = False
            await until(lambda: place.link.state == "up" and not place.live)


async def test_a_standby_that_a_busy_server_turns_away_with_words_is_no_candidate() -> None:
    async with opened() as place:
        place.closes, place.says = True, b"Port already in use\r\n"
        async with place.device():
            await until(lambda: place.came > 2)
            place.may = False
            await until(lambda: place.link.state != "up")
            before, states = place.came, set[str]()

            def has_tried() -> bool:
                states.add(place.link.state)
                return place.came > before + 5

            await until(has_tried)
            assert "up" not in states
            assert place.link.fault.endswith("closed by the other end after: Port already in use")


@pytest.mark.usefixtures("hasty")
async def test_a_holder_that_is_closed_at_once_tries_before_it_counts_as_up() -> None:
    async with opened() as place:
        place.closes = True
        async with place.device():
            await until(lambda: place.link.losses > 0)
            place.may = False
            await place.more_tries()
            assert place.link.state != "up"


async def test_a_standby_to_which_something_is_said_need_not_wait() -> None:
    async with opened() as place:
        await until(lambda: place.link.state == "waiting")
        place.may, place.greets = False, True
        async with place.device():
            await until(lambda: place.link.state == "up" and not place.live)
        assert place.came == 1


async def test_a_link_that_is_closed_while_it_tries_keeps_no_connection() -> None:
    async with opened() as place:
        await until(lambda: place.link.state == "waiting")
        place.may = False
        async with place.device():
            await until(lambda: bool(place.live))
            place.link.close()
            await until(lambda: not place.live)
        assert place.link.state == "closed"


async def test_a_standby_that_never_tried_counts_as_up_and_does_not_try() -> None:
    async with opened(may=False) as place:
        assert (place.link.state, place.link.pipe, place.tries) == ("up", None, 0)


@asynccontextmanager
async def refused_by_a_device_that_is_taken() -> AsyncIterator[tuple[Place, asyncio.StreamWriter]]:
    """A standby that could not connect, and would not try again for an hour: the device takes one connection,
    and another gateway has it."""
    async with opened(retry_s=7200.0) as place:
        await until(lambda: place.link.state == "waiting")
        place.may, place.most = False, 1
        async with place.device():
            _, holder = await asyncio.open_connection("127.0.0.1", place.port)
            await until(lambda: bool(place.live))
            place.link.hurry()
            await until(lambda: place.link.fault == "closed by the other end")
            assert place.link.state == "waiting"
            yield place, holder
            holder.close()


async def test_a_standby_takes_over_by_its_first_connection_once_the_holder_has_let_go() -> None:
    async with refused_by_a_device_that_is_taken() as (place, holder):
        holder.close()
        await until(lambda: not place.live)
        place.link.hurry()
        await until(lambda: place.link.state == "up" and bool(place.live))
        assert place.link.pipe is None
        place.may = True
        await until(lambda: place.link.pipe is not None)
        assert (place.came, len(place.live), place.link.fault) == (3, 1, "")


@pytest.mark.usefixtures("hasty")
async def test_a_standby_that_does_not_take_over_lets_the_device_go_and_stays_up() -> None:
    async with refused_by_a_device_that_is_taken() as (place, holder):
        holder.close()
        await until(lambda: not place.live)
        place.link.hurry()
        await until(lambda: place.came == 3 and not place.live)
        assert (place.link.state, place.link.pipe) == ("up", None)


async def test_a_standby_that_tries_the_device_when_the_holder_goes_takes_over_by_that_connection() -> None:
    async with opened() as place:
        await until(lambda: place.link.state == "waiting")
        place.may = False
        async with place.device():
            await until(lambda: bool(place.live) and place.link.state == "waiting")
            place.link.hurry()
            assert place.link.state == "up"
            place.may = True
            await until(lambda: place.link.pipe is not None)
            assert place.came == 1


def watched(patch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return a function that returns the functions that timers of links wait to call."""
    loop, made = asyncio.get_running_loop(), list[tuple[TimerHandle, str]]()
    call_later = loop.call_later

    def remember(delay_s: float, call: Any, *words: Any, **more: Any) -> TimerHandle:
        made.append((call_later(delay_s, call, *words, **more), getattr(call, "__name__", "")))
        return made[-1][0]

    patch.setattr(loop, "call_later", remember)
    return lambda: [name for timer, name in made if not timer.cancelled() and timer.when() > loop.time()]


async def test_a_device_that_is_lost_again_and_again_is_watched_by_one_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = watched(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as server:
        options = Tcp(host="127.0.0.1", port=server.getsockname()[1])
        link: Any = tcp_spoken(options, RECORD, retry_min_s=0.001, retry_max_s=0.001)
        link.open(Hub(), asyncio.get_running_loop())
        try:
            for _ in range(10):
                (await asyncio.to_thread(server.accept))[0].close()
                losses = link.losses
                await until(lambda before=losses: link.losses > before)  # type: ignore[misc]
            await until(lambda: link.state == "up")
            assert waiting().count("_look_whether_still") == 1
        finally:
            link.close()
    assert waiting().count("_look_whether_still") == 0
