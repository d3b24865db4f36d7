"""Which connections may stay when room is short: hosts make room for each other; some descriptors stay."""

import os
import socket
from collections import Counter

import pytest

from bus.transports import seats
from bus.transports.seats import ROOM, Process, Seat, Seats, host_of, network_of

MOST = 16384


class House:
    """A listener in a process with some descriptors, of which some are in use."""

    def __init__(self, process: Process | None = None) -> None:
        self.process = Process() if process is None else process
        self.seats = Seats(self.process)
        self.here: list[Seat] = []
        self.closed: list[str] = []

    def come(self, host: str, most: int = MOST, met: bool = False) -> str:
        """Have a connection come. Return why it was refused."""
        used = {seat.descriptor for seat in self.here}
        descriptor = next(number for number in range(MOST) if number not in used)
        if why := self.seats.refusal(host, descriptor, most):
            return why
        seat = self.seats.take_seat(host, descriptor, lambda why: self._close(seat, why))
        self.here.append(seat)
        if met:
            seat.meet()
        return ""

    def _close(self, seat: Seat, why: str) -> None:
        assert why == ROOM
        self.leave(seat)
        self.closed.append(seat.host)

    def leave(self, seat: Seat) -> None:
        seat.leave()
        self.here.remove(seat)

    @property
    def hosts(self) -> Counter[str]:
        return Counter(seat.host for seat in self.here)


@pytest.fixture(autouse=True)
def hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers may have a hundred descriptors."""
    monkeypatch.setattr(seats, "room", lambda: 100)


def test_a_host_may_have_all_that_nobody_else_wants() -> None:
    house = House()
    assert [house.come("a", met=True) for _ in range(100)] == [""] * 100
    assert "descriptors" in house.come("a")
    assert house.closed == []


@pytest.mark.parametrize("met", [True, False])
def test_hosts_make_room_until_each_has_as_many_as_the_others(met: bool) -> None:
    house = House()
    for _ in range(300):
        house.come("a", met=met)
    for host in ("b", "c"):
        for _ in range(300):
            house.come(host, met=met)
    assert len(house.here) == 100
    assert min(house.hosts.values()) >= 100 // 3
    assert house.come("d") == "", "also for the first connection of one more"
    assert len(house.here) == 100


def test_who_has_not_completed_a_handshake_goes_first_and_the_oldest_of_these() -> None:
    house = House()
    for _ in range(60):
        house.come("honest", met=True)
    for _ in range(40):
        house.come("stranger")
    first = next(seat for seat in house.here if seat.host == "stranger")
    house.come("other")
    assert house.closed == ["stranger"]
    assert first not in house.here


def test_a_host_makes_room_for_itself_only_of_what_has_not_completed_its_handshake() -> None:
    house = House()
    for _ in range(8):
        assert house.come("a", most=8) == ""
    assert house.come("a", most=8) == ""
    assert house.closed == ["a"]
    for seat in house.here:
        seat.meet()
    assert "8 are connected, and a has its share" in house.come("a", most=8)


def test_listeners_of_a_process_share_its_descriptors() -> None:
    process = Process()
    one, other = House(process), House(process)
    other.here = one.here
    for _ in range(100):
        one.come("a", met=True)
    assert other.come("b", met=True) == ""
    assert one.closed == ["a"]


def test_when_peers_are_gone_nobody_must_go_though_one_has_a_high_descriptor() -> None:
    house = House()
    for _ in range(100):
        house.come("a", met=True)
    house.come("b", met=True)
    for _ in range(10):
        house.come("b", met=True)
    assert len(house.here) == 100, "the spare descriptors stay spare"
    for seat in house.here[:50]:
        house.leave(seat)
    before = len(house.closed)
    assert [house.come("a", met=True) for _ in range(40)] == [""] * 40
    assert len(house.closed) == before


def test_a_network_of_ipv6_has_the_seats_of_one_host_and_its_addresses_share_them() -> None:
    house = House()
    for number in range(300):
        house.come(f"2001:db8::{number:x}", met=True)
    for host in ("198.51.100.1", "2001:db8:0:1::1"):
        for _ in range(300):
            house.come(host, met=True)
    of_network = sum(seat.host.startswith("2001:db8::") for seat in house.here)
    assert 100 // 3 <= of_network <= 100 // 3 + 1
    assert max(house.hosts["198.51.100.1"], house.hosts["2001:db8:0:1::1"]) <= 100 // 3 + 1
    assert "2001:db8::/64 has its share" in house.come("2001:db8::ffff")
    for _ in range(20):  # beside a neighbour who has many, one has room
        house.come("2001:db8:0:1::2", met=True)
    assert house.hosts["2001:db8:0:1::2"] >= 100 // 3 // 2


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%lo", "fe80::/64%lo"),
        ("::1", "::1"),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.1"),
        ("192.0.2.1", "192.0.2.1"),
        ("process 7", "process 7"),
        ("no:address", "no:address"),
        ("", ""),
    ],
)
def test_of_ipv6_the_network_counts_as_a_host(host: str, network: str) -> None:
    assert network_of(host) == network


def test_hosts_of_kept_networks_need_not_share() -> None:
    house = House(Process(["10.0.0.0/8", "fd00::/8"]))
    for _ in range(50):
        assert house.come("10.1.2.3", met=True) == ""
        assert house.come("fd00::1", met=True) == ""
    assert "has its share" in house.come("192.168.1.1")
    assert house.closed == []
    assert house.come("account 1000") != ""
    house.process.revise([])
    house.leave(house.here[0])
    assert house.come("10.1.2.3") == ""


def test_a_process_of_ours_is_a_host_on_a_local_socket_and_a_mapped_address_is_the_plain_one() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert host_of(one, "local") == f"process {os.getpid()}"
    with socket.socket() as sock:
        assert host_of(sock, "::ffff:10.0.0.1:80") == "10.0.0.1"
        assert host_of(sock, "fe80::1%2:80") == "fe80::1%2"
