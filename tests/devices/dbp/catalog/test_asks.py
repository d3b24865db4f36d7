"""The connections to services that a catalog asks: few, and shared by the hosts that registered them."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from cProfile import Profile
from typing import Any

import pytest

from bus.transports import seats
from devices.dbp.catalog import asks as module
from devices.dbp.catalog.asks import Asks
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import Address
from devices.dbp.catalog.outcomes import Ask
from devices.dbp.zeromq.sockets import Message, Socket
from tests.helpers.peers import until

MOST = 8
HERE = "127.0.0.1"


class Asking:
    """A catalog's connections, at most `MOST`; `answered` are the names of the services that answered."""

    def __init__(self) -> None:
        self.answered = set[str]()
        self.asks = Asks(Bounds(), self._take, MOST)

    def _take(self, name: str, _: object) -> bool:
        self.answered.add(name)
        return not name.startswith("wrong")

    async def go_round(self, names: Sequence[str], host: str, address: Address) -> None:
        """Ask services one after another, each when the one before has answered."""
        for name in names:
            self.answered.clear()
            self.ask(name, host, address)
            await until(lambda: bool(self.answered))

    async def go_on_until(self, name: str) -> None:
        """Send what waits, again and again, until a service has answered."""

        def is_answered() -> bool:
            self.asks.go_on()
            return name in self.answered

        await until(is_answered)

    def ask(self, name: str, host: str, address: Address) -> None:
        self.asks.ask(asyncio.get_running_loop(), Ask(name, address, b"", True, host), address)


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    made = Asking()
    yield made
    made.asks.close()


@pytest.fixture
def silent() -> Iterator[Address]:
    """The address of services that take connections, and never say a word."""
    with socket.create_server((HERE, 0), backlog=64) as sock:
        yield sock.getsockname()


@pytest.fixture
async def living() -> AsyncIterator[Address]:
    """The address of services that answer each ping."""

    def answer(messages: list[Message]) -> None:
        for peer, *frames in (message.frames for message in messages):
            router.send([peer, b"", b"pong", frames[2]])

    router: Socket = Socket("router", answer)
    router.open(asyncio.get_running_loop())
    yield HERE, router.bind(HERE, 0)
    router.close()


async def test_silent_services_of_one_host_take_no_connection_from_those_of_another(
    asking: Asking, silent: Address, living: Address
) -> None:
    for number in range(3 * MOST):
        asking.ask(f"early {number}", "10.0.0.1", silent)
    for number in range(2):
        asking.ask(f"living {number}", "10.0.0.2", living)
    for number in range(3 * MOST):
        asking.ask(f"late {number}", f"10.0.0.{1 + 2 * (number % 2)}", silent)
    assert len(asking.asks) == MOST
    await until(lambda: asking.answered == {"living 0", "living 1"})


async def test_one_host_has_half_of_the_connections(asking: Asking, silent: Address) -> None:
    for number in range(3 * MOST):
        asking.ask(f"{number}", "10.0.0.1", silent)
    assert len(asking.asks) == MOST // 2


async def test_more_services_than_connections_are_asked_one_after_another(
    asking: Asking, living: Address
) -> None:
    for number in range(5 * MOST):
        asking.ask(f"{number}", "10.0.0.1", living)
    await until(lambda: len(asking.answered) == 5 * MOST)
    assert len(asking.asks) <= MOST


@pytest.fixture
def connects(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The addresses to which connections were made."""
    made, connect = list[Any](), Socket.connect

    def noted(self: Any, *to: Any) -> None:
        made.append(to)
        connect(self, *to)

    monkeypatch.setattr(Socket, "connect", noted)
    return made


async def test_services_that_answer_keep_their_connections_though_they_are_of_one_host(
    asking: Asking, living: Address, connects: list[Any]
) -> None:
    names = [str(number) for number in range(MOST)]
    for _ in range(3):
        await asking.go_round(names, "10.0.0.1", living)
    assert len(connects) == len(asking.asks) == MOST


async def test_of_more_services_than_connections_most_keep_theirs(
    asking: Asking, living: Address, connects: list[Any]
) -> None:
    names = [str(number) for number in range(MOST + 2)]
    await asking.go_round(names, "10.0.0.1", living)
    connects.clear()
    await asking.go_round(names, "10.0.0.1", living)
    assert len(connects) <= 4


async def test_services_that_answer_leave_half_to_another_host(
    asking: Asking, silent: Address, living: Address
) -> None:
    await asking.go_round([str(number) for number in range(MOST)], "10.0.0.1", living)
    for number in range(MOST):
        asking.ask(f"late {number}", "10.0.0.2", silent)
    await asking.go_round(["one", "other"], "10.0.0.3", living)
    assert len(asking.asks) == MOST


async def test_wrong_answers_keep_no_more_connections_than_silence(asking: Asking, living: Address) -> None:
    await asking.go_round([f"wrong {number}" for number in range(MOST)], "10.0.0.1", living)
    assert len(asking.asks) == MOST // 2


async def test_a_service_that_does_not_answer_gives_way_to_another_of_its_host(
    asking: Asking, silent: Address, living: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MOST):
        asking.ask(f"{number}", "10.0.0.1", silent)
    asking.ask("living", "10.0.0.1", living)
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    await asking.go_on_until("living")


def calls_of(function: Callable[[], object]) -> int:
    """Return how many functions a call of one calls."""
    with Profile() as profile:
        function()
    return sum(row.callcount for row in profile.getstats())


async def test_silence_of_many_hosts_leaves_connections_to_the_services_of_others(
    asking: Asking, silent: Address, living: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network failure makes thousands of hosts silent at once, each with one service."""
    for number in range(3 * MOST):
        asking.ask(f"{number}", f"10.0.1.{number}", silent)
    asking.ask("living", "10.0.0.2", living)
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    await asking.go_on_until("living")


async def test_to_ask_in_vain_costs_the_same_however_many_hosts_have_connections(silent: Address) -> None:
    """Else the loop stands for a second, four times a second, while thousands of hosts are silent."""
    calls = []
    for most in (4, 32):
        asks = Asks(Bounds(), lambda *_: True, most)
        for number in range(100):
            ask = Ask(f"{number}", silent, b"", True, f"10.0.1.{number}")
            asks.ask(asyncio.get_running_loop(), ask, silent)
        asks.go_on()
        calls.append(calls_of(asks.go_on))
        asks.close()
    assert calls[1] <= calls[0]


async def test_connections_are_begun_some_in_a_turn(
    asking: Asking, living: Address, connects: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BEGUN_MAX", 2)
    found = []
    for number in range(5):
        asking.ask(f"{number}", f"10.0.0.{number}", living)
    for _ in range(4):
        found.append(len(connects))
        await asyncio.sleep(0)
    assert (found[0], found[-1]) == (2, 5)
    await until(lambda: len(asking.answered) == 5)


async def test_a_service_that_is_gone_waits_no_longer(
    asking: Asking, silent: Address, living: Address
) -> None:
    for number in range(MOST):
        asking.ask(f"{number}", "10.0.0.1", silent)
    for name in ("gone", "living"):
        asking.ask(name, "10.0.0.1", living)
    for name in ("gone", *map(str, range(MOST))):
        asking.asks.drop(name)
    asking.asks.go_on()
    await until(lambda: asking.answered == {"living"})
    assert len(asking.asks) == 1


@pytest.mark.parametrize(("descriptors", "most"), [(16, 4), (4096, MOST), (1, 2)])
async def test_connections_leave_descriptors_to_peers(
    asking: Asking, silent: Address, monkeypatch: pytest.MonkeyPatch, descriptors: int, most: int
) -> None:
    monkeypatch.setattr(seats, "room", lambda: descriptors)
    for host in range(MOST):
        for number in range(MOST):
            asking.ask(f"{host} {number}", f"10.0.0.{host}", silent)
    assert len(asking.asks) == most
