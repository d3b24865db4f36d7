"""The presence of clients, without sockets: connections are words, times are numbers."""

import itertools

import pytest

from bus.tmq.broker.presence import GIVEN_UP_S, LOOK_S, Presence
from bus.tmq.wire import Address

HERE, THERE = ("10.0.0.1", 1), ("10.0.0.1", 2)
HOST = "10.0.0.1"


class Broker:
    """The registrations that a broker knows, and who is present."""

    def __init__(self, away: int = 4) -> None:
        self.registered = {HERE, THERE}
        self.presence = Presence[str](self.registered.__contains__, 100, away)

    def hosts(self, count: int, first: int = 100) -> list[bool]:
        """Register addresses of one host where nobody need listen; return whether each was admitted."""
        found = []
        for port in range(first, first + count):
            found.append(self.presence.admit(HOST, (HOST, port), 0.0))
            self.registered |= {(HOST, port)} if found[-1] else set()
        return found


@pytest.fixture
def broker() -> Broker:
    return Broker()


ORDERS = {
    "it greets, registers and ends": ["greets", "registers", "ends"],
    "it greets and ends, then its registrations come by other connections": ["greets", "ends", "registers"],
    "its greeting is read when its connection has ended": ["was here", "registers"],
    "it registers before it greets": ["registers", "greets", "ends"],
    "its registration is repeated on a connection without a greeting": [
        "greets",
        "ends",
        "registers",
        "registers",
    ],
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_client_that_ends_in_any_order_of_messages_is_looked_for_and_given_up_in_bounded_time(
    broker: Broker, order: str
) -> None:
    """A client that is closed beside other load ended as the second or third: nobody looked for it again."""
    presence = broker.presence
    for step in ORDERS[order]:
        if step == "greets":
            presence.greeted("a", HOST, 7, HERE, 0.0)
        elif step == "was here":
            presence.was_here(HOST, 7, HERE, 0.0)
        elif step == "ends":
            assert presence.lost("a", 0.0) == HERE
        else:
            presence.admit(HOST, HERE, 0.0)
            presence.heard(HERE, 0.0)
    assert HERE in presence
    assert presence.route(HERE) is None
    looks = [s for s in range(100) if presence.missing(float(s)) == [HERE]]
    assert len(looks) >= 9
    assert all(later - one == LOOK_S for one, later in itertools.pairwise(looks))
    assert presence.given_up(GIVEN_UP_S) == []
    assert presence.given_up(GIVEN_UP_S + 0.1) == [HERE]


def test_a_connected_client_is_neither_looked_for_nor_given_up(broker: Broker) -> None:
    broker.presence.greeted("a", HOST, 7, HERE, 0.0)
    assert broker.presence.missing(1000.0) == broker.presence.given_up(1000.0) == []
    assert list(broker.presence.connected()) == [HERE]


def test_a_client_that_repeats_itself_or_answers_is_kept(broker: Broker) -> None:
    broker.presence.greeted("a", HOST, 7, HERE, 0.0)
    broker.presence.lost("a", 0.0)
    broker.presence.heard(HERE, 60.0)
    assert broker.presence.answered(HERE, 7, 120.0)
    assert broker.presence.given_up(120.0 + GIVEN_UP_S) == []


def test_who_is_to_be_looked_for_now_is_without_delay(broker: Broker) -> None:
    broker.presence.greeted("a", HOST, 7, HERE, 0.0)
    broker.presence.lost("a", 0.0)
    assert broker.presence.missing(0.1) == []
    for address in (HERE, THERE):
        broker.presence.look_now(address, 0.1)
    assert broker.presence.missing(0.1) == [HERE]


def test_a_client_that_is_forgotten_has_no_connection_any_more(broker: Broker) -> None:
    presence = broker.presence
    presence.greeted("a", HOST, 7, HERE, 0.0)
    presence.forget(HERE)
    assert (len(presence), HERE in presence, presence.route(HERE)) == (0, False, None)
    assert presence.lost("a", 1.0) is None


def test_another_program_at_the_address_is_not_the_client(broker: Broker) -> None:
    broker.presence.greeted("a", HOST, 7, HERE, 0.0)
    assert broker.presence.answered(HERE, 8, 1.0)  # it is connected, and may have got another number
    broker.presence.lost("a", 1.0)
    assert not broker.presence.answered(HERE, 8, 1.0)
    assert broker.presence.answered(THERE, 8, 1.0)  # of 2015: nothing is known of it


def test_a_program_that_takes_the_place_of_another_is_told_apart_by_its_number(broker: Broker) -> None:
    greeted = broker.presence.greeted
    assert not greeted("a", HOST, 7, HERE, 0.0)
    assert not greeted("a", HOST, 8, HERE, 0.0)  # the same client: its gateway got a number
    assert not greeted("b", HOST, 8, HERE, 0.0)  # it is back
    assert greeted("c", HOST, 9, HERE, 0.0)
    assert broker.presence.lost("a", 0.0) is broker.presence.lost("b", 0.0) is None
    assert broker.presence.lost("c", 0.0) == HERE


def test_a_client_has_one_address(broker: Broker) -> None:
    broker.presence.greeted("a", HOST, 7, HERE, 0.0)
    assert broker.presence.moved("a", HERE) is None
    assert broker.presence.moved("a", THERE) == HERE
    broker.presence.greeted("a", HOST, 7, THERE, 0.0)
    assert HERE not in broker.presence
    assert broker.presence.is_at(THERE, "a")
    assert broker.presence.lost("a", 0.0) == THERE


def test_a_host_has_a_few_clients_that_keep_no_connection_and_any_number_that_do(broker: Broker) -> None:
    assert broker.hosts(6) == [True] * 4 + [False] * 2
    assert not broker.presence.admit(HOST, HERE, 0.0)
    assert broker.presence.admit("10.0.0.2", ("10.0.0.2", 1), 0.0)
    fresh = Broker()
    for number in range(50):
        where: Address = (HOST, 1000 + number)
        fresh.presence.greeted(f"c{number}", HOST, number, where, 0.0)
        assert fresh.presence.admit(HOST, where, 0.0)


def test_those_that_are_registered_no_more_make_room(broker: Broker) -> None:
    broker.hosts(4)
    broker.registered.clear()
    assert broker.presence.admit(HOST, HERE, 2.0)


def test_a_stranger_that_greets_as_many_clients_one_after_the_other_has_room_for_as_few(
    broker: Broker,
) -> None:
    """They count as away once their connections are gone, until they answer."""
    admitted = 0
    for number in range(50):
        where: Address = (HOST, 1000 + number)
        broker.presence.greeted("c", HOST, number, where, 0.0)
        admitted += broker.presence.admit(HOST, where, 0.0)
        broker.registered.add(where)
        broker.presence.lost("c", 0.0)
    assert admitted == 4


def test_clients_that_moved_to_another_broker_count_as_away_no_more(broker: Broker) -> None:
    for number in range(50):
        where: Address = (HOST, 1000 + number)
        broker.registered.add(where)
        broker.presence.greeted(f"c{number}", HOST, number, where, 0.0)
    for number in range(50):
        broker.presence.lost(f"c{number}", 0.0)
    assert broker.hosts(1) == [False]
    assert all(broker.presence.answered((HOST, 1000 + number), number, 2.0) for number in range(50))
    assert broker.hosts(4) == [True] * 4


def test_what_is_remembered_is_bounded() -> None:
    small = Presence[int](lambda _: True, 3)
    for number in range(10):
        small.greeted(number, HOST, number, (HOST, number + 1), 0.0)
        small.was_here(HOST, number, (HOST, number + 100), 0.0)
    assert [(HOST, port) in small for port in (1, 100, 2, 3, 101)] == [True, True, True, False, False]
    assert len(small) == 2
    assert small.unnoted == 17


@pytest.mark.parametrize("hosts", [1, 20, 1000])
@pytest.mark.parametrize("way", ["greets and ends", "was here"])
def test_strangers_who_greet_and_register_nothing_take_nobodys_place_for_long(way: str, hosts: int) -> None:
    """One of them had all places for minutes, and nobody was told of the honest ones that were not noted."""
    registered = set[Address]()
    presence = Presence[int](registered.__contains__, 2000)
    for number in range(10_000):
        host, now_s = f"10.1.{number % hosts}", number / 500
        if way == "was here":
            presence.was_here(host, number, (host, number), now_s)
        else:
            presence.greeted(number, host, number, (host, number), now_s)
            presence.lost(number, now_s)
        if number % 500 == 0:
            at = ("10.0.0.9", number + 1)
            presence.greeted(-number - 1, at[0], number, at, now_s)
            assert presence.is_at(at, -number - 1)
            registered.add(at)
    assert all(address in presence for address in registered)
    assert presence.unnoted == 0


@pytest.mark.parametrize("count", [1, 64, 1000, 10_000])
def test_of_any_number_of_clients_that_are_away_those_that_answer_stay_and_no_other(count: int) -> None:
    """Beyond the first hundreds in the order of their coming, nobody was looked for, and all were dropped."""
    presence = Presence[int](lambda _: True, 65536)
    addresses = [(HOST, number + 1) for number in range(count)]
    for number, address in enumerate(addresses):
        presence.greeted(number, HOST, number, address, 0.0)
        presence.lost(number, 0.0)
    lives, gone = set(addresses[::2]), list[Address]()
    for now_s in range(1, 600):
        for address in presence.missing(now_s):
            if address in lives:
                assert presence.answered(address, address[1] - 1, now_s)
        for address in presence.given_up(now_s):
            presence.forget(address)
            gone.append(address)
    assert sorted(gone) == addresses[1::2]
